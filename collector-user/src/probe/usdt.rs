//! Arguments of markers: from the words of the assembler to what the kernel fetches.
//!
//! An argument is `SIZE@OPERAND`; a negative size is that of a number with a sign. Operands of x86-64 are in AT&T's
//! syntax (`%edi`, `-16(%rbp)`, `$5`), those of aarch64 `x0`, `[sp, 16]`, `5`.

use super::machine::Machine;

/// An argument that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// The place, as `%di`, `-16(%bp)` or `\5`.
    pub(super) place: String,
    /// Its type, as `s32`.
    pub(super) kind: String,
}

/// Each argument of a marker, or the words of one that can't be fetched: of floating-point numbers, of tables that a second
/// register leads into, of variables that a symbol names.
pub(super) fn arguments(machine: Machine, text: &str) -> Vec<Result<Fetched, String>> {
    split(text).into_iter().map(|word| one(machine, word).ok_or_else(|| word.to_owned())).collect()
}

/// Words, of which one may have a space within brackets.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => {
                words.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    words.extend(text.get(start..));
    words.retain(|word| !word.is_empty());
    words
}

fn one(machine: Machine, word: &str) -> Option<Fetched> {
    let (size, operand) = word.split_once('@')?;
    let bits = match size.strip_prefix('-').unwrap_or(size) {
        "1" => 8,
        "2" => 16,
        "4" => 32,
        "8" => 64,
        _ => return None,
    };
    let kind = format!("{}{bits}", if size.starts_with('-') { 's' } else { 'u' });
    let place = match machine {
        Machine::X86_64 => x86_64(machine, operand)?,
        Machine::Aarch64 => aarch64(machine, operand)?,
    };
    Some(Fetched { place, kind })
}

fn x86_64(machine: Machine, operand: &str) -> Option<String> {
    if let Some(number) = operand.strip_prefix('$') {
        return constant(number);
    }
    match operand.split_once('(') {
        Some((offset, register)) => {
            let offset = if offset.is_empty() { 0 } else { signed(offset)? };
            Some(format!("{offset:+}(%{})", machine.register(register.strip_suffix(')')?)?))
        }
        None if operand.starts_with('%') => Some(format!("%{}", machine.register(operand)?)),
        None => None,
    }
}

fn aarch64(machine: Machine, operand: &str) -> Option<String> {
    if let Some(inner) = operand.strip_prefix('[') {
        let (register, offset) =
            inner.strip_suffix(']')?.split_once(',').unwrap_or((inner.strip_suffix(']')?, "0"));
        let offset = offset.trim();
        let offset = signed(offset.strip_prefix('#').unwrap_or(offset))?;
        return Some(format!("{offset:+}(%{})", machine.register(register.trim())?));
    }
    match machine.register(operand) {
        Some(register) => Some(format!("%{register}")),
        None => constant(operand),
    }
}

fn constant(text: &str) -> Option<String> {
    Some(format!("\\{}", signed(text)?))
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(rest) => i64::try_from(super::spec::number(rest)?).ok()?.checked_neg(),
        None => super::spec::number(text)?.try_into().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(machine: Machine, text: &str) -> Vec<Result<String, String>> {
        let fetched = arguments(machine, text).into_iter();
        fetched.map(|one| one.map(|Fetched { place, kind }| format!("{place}:{kind}"))).collect()
    }

    #[test]
    fn operands_of_assemblers_become_what_the_kernel_fetches() {
        let ok = |words: &[&str]| -> Vec<Result<String, String>> {
            words.iter().map(|word| Ok((*word).to_owned())).collect()
        };
        assert_eq!(
            told(Machine::X86_64, "-4@%edi 8@-16(%rbp) -4@$5 4@$-7 1@%al 8@(%rax) 2@0x10(%r10)"),
            ok(&["%di:s32", "-16(%bp):u64", "\\5:s32", "\\-7:u32", "%ax:u8", "+0(%ax):u64", "+16(%r10):u16"])
        );
        assert_eq!(
            told(Machine::Aarch64, "-4@w0 8@[sp, 16] 8@[x1] -8@[x29, -8] 4@5"),
            ok(&["%x0:s32", "+16(%sp):u64", "+0(%x1):u64", "-8(%x29):s64", "\\5:u32"])
        );
        assert_eq!(told(Machine::X86_64, ""), []);
    }

    #[test]
    fn what_can_not_be_fetched_is_named() {
        for word in ["8f@%xmm0", "8@16(%rax,%rbx,8)", "8@counter(%rip)", "4@%ah", "%edi", "3@%rdi", "@", "8@"]
        {
            assert_eq!(told(Machine::X86_64, word), [Err(word.to_owned())], "{word}");
        }
    }
}
