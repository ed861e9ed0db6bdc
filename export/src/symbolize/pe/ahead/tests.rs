//! Maps as `crossgen2` writes them, and others.

use std::fmt::Write as _;
use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// The example of the specification, with the methods of an image.
const MAP: &str = "FFFFFFFF 00 734D59D6DE0E96AA3C77B3E2ED498097\r\n\
    FFFFFFFE 00 1\r\n\
    FFFFFFFD 00 2\r\n\
    FFFFFFFC 00 3\r\n\
    FFFFFFFB 00 1\r\n\
    000016E0 25 System.Linq.Enumerable::Sum(System.Collections.Generic.IEnumerable`1<int>)\r\n\
    00001710 103 string System.Linq.Error::.cctor()\r\n";

fn id() -> AheadMapId {
    let signature = 0x734d_59d6_de0e_96aa_3c77_b3e2_ed49_8097_u128.to_be_bytes();
    AheadMapId { signature, version: 1, path: b"/build/System.Linq.ni.r2rmap".to_vec() }
}

fn names(map: &[u8], wanted: &[u64]) -> (Result<(), AheadMapError>, Vec<Option<String>>) {
    let mut answer = Answer::new(wanted);
    let outcome = look_up(&mut Cursor::new(map), &id(), &mut answer);
    (outcome, wanted.iter().map(|&wanted| answer.name_at(wanted).map(str::to_owned)).collect())
}

#[test]
fn methods_are_named_from_their_first_address_to_their_last() {
    let (outcome, found) = names(MAP.as_bytes(), &[0x16df, 0x16e0, 0x1704, 0x1705, 0x1812, 0x1813]);
    outcome.unwrap();
    let sum = "System.Linq.Enumerable::Sum(System.Collections.Generic.IEnumerable`1<int>)";
    let made = "string System.Linq.Error::.cctor()";
    let expected = [None, Some(sum), Some(sum), None, Some(made), None];
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
}

#[test]
fn a_map_is_found_by_its_key() {
    assert_eq!(id().key(), "r2rmap-v1-734d59d6de0e96aa3c77b3e2ed498097");
    assert_eq!(id().name(), b"System.Linq.ni.r2rmap");
}

#[test]
fn a_map_of_another_build_or_of_another_kind_names_nothing() {
    let of = |map: &str| {
        let (outcome, found) = names(map.as_bytes(), &[0x16e0]);
        assert_eq!(found, [None]);
        outcome.unwrap_err().to_string()
    };
    let other = "it has the signature 734d59d6de0e96aa3c77b3e2ed498098, and is another build's";
    assert_eq!(of(&MAP.replace("8097", "8098")), other);
    assert_eq!(of(&MAP.replace("FE 00 1", "FE 00 2")), "it has version 2, and 1 is read");
    let header = "it does not begin with a signature and a version";
    assert_eq!(of(&MAP.replace("FFFFFFFE 00 1\r\n", "")), header);
    assert_eq!(of(&MAP.replace("734D", "734X")), header);
    let (_, methods) = MAP.split_once("FB 00 1\r\n").unwrap();
    assert_eq!(of(methods), header);
}

#[test]
fn endless_lines_cost_only_themselves() {
    let (header, methods) = MAP.split_once("000016E0").unwrap();
    let mut map = header.to_owned();
    for length in [MOST_OF_LINE - 20, MOST_OF_LINE - 8, MOST_OF_LINE, 3 * MOST_OF_LINE] {
        writeln!(map, "16d0 10 {}", "x".repeat(length)).unwrap();
    }
    write!(map, "000016E0{methods}16d0 10 last").unwrap();
    let (outcome, found) = names(map.as_bytes(), &[0x16e0]);
    outcome.unwrap();
    assert!(found[0].as_deref().unwrap().starts_with("System.Linq.Enumerable::Sum"));
    let (_, found) = names(map.as_bytes(), &[0x16d0]);
    assert_eq!(found[0].as_ref().map(String::len), Some(MOST_OF_LINE - 20));
}

#[test]
fn names_read_without_results() {
    for (written, name) in [
        ("System.Threading.Thread::StartCallback()", "System.Threading.Thread.StartCallback()"),
        ("System.Void A.B::.ctor(int, string)", "A.B..ctor(int, string)"),
        (
            "System.Collections.Generic.Dictionary`2<System.String, System.Int32> A.B`2<X, Y>::Of(C::D)",
            "A.B`2<X, Y>.Of(C::D)",
        ),
        ("no method", "no method"),
        ("f ::g()", "f .g()"),
    ] {
        assert_eq!(readable(written), name);
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "[0-9a-fF: <>\n\\x00-\\x20]{0,200}", noise in any::<Vec<u8>>()) {
        let _ = names(text.as_bytes(), &[0, 1, 0xa, 0x10, u64::MAX]);
        let _ = names(&noise, &[0, u64::MAX]);
        let (_, found) = names(format!("{MAP}{text}").as_bytes(), &[0x16e0, 0xffff_ffff]);
        prop_assert!(found[0].is_some());
        let _ = readable(&text);
    }
}
