//! A tracepoint of this program's own: each line that it reads becomes an occurrence, for whoever records it meanwhile, as by
//! `sudo collector run -e user_events:line_read -o lines.jsonl`. `sudo cargo run --example own_event`

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_common::event::{Extent, FieldKind, Width};
    use collector_user::user_events::{Declaration, UserEvents};

    let declared = Declaration::new("line_read")
        .field("number", FieldKind::Unsigned(Width::W32), Extent::One)
        .field("text", FieldKind::Char, Extent::RelLoc);
    let event = UserEvents::open()?.register(&declared)?;
    println!("user_events:{} is there", event.name());
    for (number, line) in (1_u32..).zip(std::io::stdin().lines()) {
        let is_recorded = event.write(&[number.into(), line?.as_str().into()])?;
        println!("{number} is {}", if is_recorded { "recorded" } else { "not recorded" });
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
