//! A CPU profile of this machine, two seconds long, as pprof: `sudo cargo run --example cpu_profile -- FILE.pb.gz`.

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    use collector_user::session::{Session, SessionSettings};
    use export::format::{Profile, by_name};
    use std::{fs::File, os::fd::AsFd as _, os::unix::net::UnixStream, time::Duration};

    let file = std::env::args_os().nth(1).unwrap_or_else(|| "profile.pb.gz".into());
    let settings = SessionSettings { duration: Some(Duration::from_secs(2)), ..SessionSettings::default() };
    let mut session = Session::start(settings, None)?;
    let (stop, _keep) = UnixStream::pair()?;
    session.run(stop.as_fd(), |_progress| {})?;
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
