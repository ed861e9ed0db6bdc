//! Sets of bits as newtypes with a constant for each bit.

/// Declares a set of bits.
macro_rules! bit_set {
    ($(#[$doc:meta])* $name:ident($inner:ty) { $($(#[$bit_doc:meta])* $bit:ident = $shift:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self(1 << $shift);)*

            /// Whether all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The bits that are in both.
            #[must_use]
            pub const fn and(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// The bits that are in either.
            #[must_use]
            pub const fn or(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.or(other)
            }
        }
    };
}

pub(super) use bit_set;
