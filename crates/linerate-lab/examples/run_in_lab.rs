//! Brings up the lab of a TOML file, runs one program in one of its hosts, and takes it down.
//!
//! ```text
//! cargo run --example run_in_lab -- office.toml server ip address
//! ```

use std::error::Error;
use std::process::ExitCode;

use linerate_lab::{Lab, LabSpec, enter};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let entered = enter()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, host, program, arguments @ ..] = words.as_slice() else {
        return Err("give a TOML file, a host and a program".into());
    };
    let spec = LabSpec::from_toml(&std::fs::read_to_string(file)?, file)?;
    let lab = Lab::up(&spec, &entered)?;
    let status = lab.command(host, program)?.args(arguments).status()?;
    lab.down()?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}
