//! A CPU profile of this machine, two seconds long, as pprof: `sudo cargo run --example cpu_profile -- FILE.pb.gz`.

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_user::session::{Session, SessionSettings};
    use export::format::{Profile, by_name};
    use std::{fs::File, time::Duration};

    let file = std::env::args_os().nth(1).unwrap_or_else(|| "profile.pb.gz".into());
    let mut session = Session::start(SessionSettings::default(), None)?;
    session.parse_for(Duration::from_secs(2))?;
    let recording = session.finish()?;
    let symbols = recording.symbolize();
    let profile = Profile { machine: &recording.machine, symbols: &symbols };
    by_name("pprof").expect("a format that every build has").write(profile, &mut File::create(file)?)?;
    println!("{} samples, {} lost", recording.ledger.delivered(), recording.ledger.total_lost());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("recording works on Linux");
}
