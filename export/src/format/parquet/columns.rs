//! The columns, in their order: `docs/parquet.md` tells what each means. A row has those that its kind of record has; the others are
//! null there, and take nothing.

use parquet::errors::Result;
use parquet::schema::types::TypePtr;

use super::file::Group;
use super::leaf::{Column, Leaf, Map};
use super::values::{Address, Flags, Integers, Signed, Texts, Time};

type Text = Leaf<Texts>;
type Number = Leaf<Integers<Signed>>;
type Numbered = Leaf<Integers<Address>>;
type Moment = Leaf<Integers<Time>>;
type Flag = Leaf<Flags>;
type Labels = Map<Texts>;
type Numbers = Map<Integers<Signed>>;

macro_rules! columns {
    ($($name:ident: $kind:ident,)*) => {
        /// The rows of a group.
        pub(super) struct Columns {
            $(pub(super) $name: $kind,)*
        }

        impl Columns {
            pub(super) fn new() -> Self {
                Self { $($name: $kind::new(stringify!($name)),)* }
            }

            fn all(&mut self) -> impl Iterator<Item = &mut dyn Column> {
                let all: Vec<&mut dyn Column> = vec![$(&mut self.$name),*];
                all.into_iter()
            }
        }
    };
}

columns! {
    record: Text,
    // Of samples; of processes those that they have, too.
    time: Moment,
    time_ns: Number,
    cpu: Number,
    kind: Text,
    unit: Text,
    period: Number,
    value: Number,
    process_id: Number,
    pid: Number,
    process: Text,
    container: Text,
    tid: Number,
    thread: Text,
    attributes: Labels,
    stack: Number,
    // Of frames, with their stack.
    depth: Number,
    function: Text,
    symbol: Text,
    module: Text,
    build_id: Text,
    address: Numbered,
    file: Text,
    line: Number,
    column: Number,
    inlined: Flag,
    kernel: Flag,
    guessed: Flag,
    // Of processes.
    end_time: Moment,
    end_ns: Number,
    parent_id: Number,
    namespace_pid: Number,
    exit_status: Number,
    exit_signal: Number,
    uid: Number,
    user: Text,
    command: Text,
    cgroup: Text,
    // Of spans.
    span: Text,
    timeline: Text,
    // Of samples and spans, too.
    numbers: Numbers,
}

impl Columns {
    pub(super) fn schema(&mut self) -> Result<Vec<TypePtr>> {
        self.all().map(|column| column.schema()).collect()
    }

    /// Writes them into a group of so many rows; they are empty then.
    pub(super) fn write(&mut self, rows: u32, group: &mut Group<'_>) -> Result<()> {
        self.all().try_for_each(|column| column.write(rows, group))
    }

    /// Bytes of distinct texts, which the number of rows does not bound.
    pub(super) fn size(&mut self) -> usize {
        self.all().map(|column| column.size()).sum()
    }
}
