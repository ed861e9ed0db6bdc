//! The input is what a receiver of OTLP answers: that it took a request, or why not, as a message or as a header with one.
//!
//! What is read is compared with what another reading of the message finds, wherever that knows how to go on; and a message that is
//! made of the input says what was put into it.

use std::time::Duration;

use export::format::otlp::{Refusal, Response};

/// Bytes that any answer may take, and bytes for each of its own: a detail of two bytes is two empty texts.
const FIXED_MEMORY: u64 = 64 << 10;
const PER_BYTE: u64 = 256;

/// What the delay's detail is called, behind any host.
const RETRY_INFO: &str = "/google.rpc.RetryInfo";

/// Reads the input as all of them. Out: whether one of them says anything.
pub(crate) fn run(input: &[u8]) -> bool {
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let (mut response, mut refusal) = (None, None);
    let used = allocation_counter::measure(|| {
        response = Response::of(input).ok();
        refusal = Refusal::of(input).ok();
        Refusal::of_header(input);
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    compare(response.as_ref(), response_of(input));
    compare(refusal.as_ref(), refusal_of(input));
    for is_padded in [true, false] {
        let header = base64(input, is_padded);
        assert_eq!(Refusal::of_header(&header), refusal);
        let spoilt = [b"-", &header[..]].concat();
        assert_eq!(Refusal::of_header(&spoilt), None, "a byte is no digit");
    }
    made(input);
    let says = |it: &Response| *it != Response::default();
    response.as_ref().is_some_and(says) || refusal.is_some_and(|it| it != Refusal::default())
}

fn compare<T: PartialEq + std::fmt::Debug>(found: Option<&T>, expected: Result<T, Not>) {
    match expected {
        Ok(expected) => assert_eq!(found, Some(&expected)),
        Err(Not::AMessage) => assert_eq!(found, None),
        Err(Not::Known) => {}
    }
}

/// What is told by a message with these bytes in it, behind fields that nobody knows.
fn made(input: &[u8]) {
    let (seconds, rest) = input.split_first_chunk().unwrap_or((&[0; 8], input));
    let (nanos, rest) = rest.split_first_chunk().unwrap_or((&[0; 4], rest));
    let (seconds, nanos) = (i64::from_le_bytes(*seconds), i32::from_le_bytes(*nanos));
    let message = String::from_utf8_lossy(rest).into_owned();
    // A group of a number and another group, four and eight bytes, and a text.
    let others = [
        &[0x7b, 0x08, 1, 0x7b, 0x7c, 0x7c, 0x75, 1, 2, 3, 4, 0x71, 1, 2, 3, 4, 5, 6, 7, 8][..],
        &text(9, rest),
    ];
    let others = others.concat();
    let partial = [number(1, seconds), others.clone(), text(2, message.as_bytes())].concat();
    let response = Response::of(&[others.clone(), text(1, &partial)].concat()).unwrap();
    let rejected_profiles = seconds.max(0).cast_unsigned();
    assert_eq!(response, Response { rejected_profiles, message: message.clone() });

    let delay = text(1, &[number(2, nanos.into()), others.clone(), number(1, seconds)].concat());
    let any = |name: &str| text(3, &[text(1, name.as_bytes()), others.clone(), text(2, &delay)].concat());
    let details = [any("host/google.rpc.Other"), any(&format!("host{RETRY_INFO}")), any(RETRY_INFO)].concat();
    let refusal = Refusal::of(&[details, text(2, message.as_bytes()), number(1, 8)].concat()).unwrap();
    assert_eq!(refusal, Refusal { message, retry_after: delay_of(seconds, nanos) });
}

fn delay_of(seconds: i64, nanos: i32) -> Option<Duration> {
    let is_positive = seconds >= 0 && nanos >= 0;
    is_positive.then(|| {
        let whole = u64::from(nanos.cast_unsigned() / 1_000_000_000);
        Duration::new(seconds.cast_unsigned() + whole, nanos.cast_unsigned() % 1_000_000_000)
    })
}

/// Why there is no answer.
#[derive(Clone, Copy)]
enum Not {
    /// The bytes are none.
    AMessage,
    /// They have groups, which are not looked into here.
    Known,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

impl<'a> Value<'a> {
    fn number(&self) -> Result<i64, Not> {
        if let Self::Number(number) = self { Ok(number.cast_signed()) } else { Err(Not::AMessage) }
    }

    fn bytes(&self) -> Result<&'a [u8], Not> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Not::AMessage) }
    }

    fn text(&self) -> Result<String, Not> {
        String::from_utf8(self.bytes()?.to_owned()).map_err(|_| Not::AMessage)
    }
}

fn response_of(input: &[u8]) -> Result<Response, Not> {
    let (mut rejected, mut message) = (0, String::new());
    each(input, |tag, value| match tag {
        // Of several, each adds to those before.
        1 => each(value.bytes()?, |tag, value| {
            match tag {
                1 => rejected = value.number()?,
                2 => message = value.text()?,
                _ => {}
            }
            Ok(())
        }),
        _ => Ok(()),
    })?;
    Ok(Response { rejected_profiles: rejected.max(0).cast_unsigned(), message })
}

fn refusal_of(input: &[u8]) -> Result<Refusal, Not> {
    let (mut message, mut info) = (String::new(), None);
    each(input, |tag, value| {
        match tag {
            2 => message = value.text()?,
            3 => {
                let (mut name, mut detail) = (String::new(), &[][..]);
                each(value.bytes()?, |tag, value| {
                    match tag {
                        1 => name = value.text()?,
                        2 => detail = value.bytes()?,
                        _ => {}
                    }
                    Ok(())
                })?;
                if name.ends_with(RETRY_INFO) {
                    info.get_or_insert(detail.to_vec());
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    let retry_after = match info.map(|detail| delay_in(&detail)) {
        None | Some(Err(Not::AMessage)) => None,
        Some(delay) => delay?,
    };
    Ok(Refusal { message, retry_after })
}

fn delay_in(detail: &[u8]) -> Result<Option<Duration>, Not> {
    let mut delay = None;
    each(detail, |tag, value| {
        if tag != 1 {
            return Ok(());
        }
        let (seconds, nanos) = delay.get_or_insert((0, 0));
        each(value.bytes()?, |tag, value| {
            match tag {
                1 => *seconds = value.number()?,
                // The lower half counts.
                2 => *nanos = value.number()? as i32,
                _ => {}
            }
            Ok(())
        })
    })?;
    Ok(delay.and_then(|(seconds, nanos)| delay_of(seconds, nanos)))
}

/// All fields of a message ("Encoding" of protobuf's documentation).
fn each<'a>(mut input: &'a [u8], mut take: impl FnMut(u64, Value<'a>) -> Result<(), Not>) -> Result<(), Not> {
    while !input.is_empty() {
        let key = varint(&mut input)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut input)?),
            1 => skip(&mut input, 8).map(|_| Value::Fixed)?,
            2 => {
                let len = varint(&mut input)?;
                Value::Bytes(skip(&mut input, len)?)
            }
            3 | 4 => return Err(Not::Known),
            5 => skip(&mut input, 4).map(|_| Value::Fixed)?,
            _ => return Err(Not::AMessage),
        };
        if key < 8 || key > u32::MAX.into() {
            return Err(Not::AMessage);
        }
        take(key >> 3, value)?;
    }
    Ok(())
}

fn skip<'a>(input: &mut &'a [u8], len: u64) -> Result<&'a [u8], Not> {
    let len = usize::try_from(len).map_err(|_| Not::AMessage)?;
    let (skipped, rest) = input.split_at_checked(len).ok_or(Not::AMessage)?;
    *input = rest;
    Ok(skipped)
}

/// Seven bits a byte, the lowest first, as long as the eighth is set; 64 bits at most.
fn varint(input: &mut &[u8]) -> Result<u64, Not> {
    let len = 1 + input.iter().take_while(|&&byte| byte >= 0x80).count() as u64;
    let bytes = skip(input, len)?;
    let bits = bytes.iter().rev().fold(0_u128, |bits, byte| bits << 7 | u128::from(byte & 0x7f));
    u64::try_from(bits).ok().filter(|_| len <= 10).ok_or(Not::AMessage)
}

fn number(tag: u8, number: i64) -> Vec<u8> {
    [&[tag << 3][..], &encoded(number.cast_unsigned())].concat()
}

fn text(tag: u8, text: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2][..], &encoded(text.len() as u64), text].concat()
}

fn encoded(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn base64(bytes: &[u8], is_padded: bool) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::new();
    for three in bytes.chunks(3) {
        let missing = 3 - three.len();
        let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte)) << (8 * missing);
        text.extend((0..4 - missing).map(|digit| DIGITS[bits >> (18 - 6 * digit) & 63]));
        text.extend(b"==".iter().take(if is_padded { missing } else { 0 }));
    }
    text
}
