//! A browser at hand prints pages: there is no need for a second way to set them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::exit::{CmdResult, Failure};

/// Names the browser, where it is not one of [`NAMES`] in `PATH`.
pub const BROWSER_VARIABLE: &str = "LINERATE_BROWSER";

/// Programs that print to PDF without a screen.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Time after which a browser that does not end is stopped; a study's page takes 2 s.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Prints the page `html` into `pdf`.
pub fn print(html: &str, pdf: &Path) -> CmdResult<()> {
    let browser = find()?;
    // The browser wants files, and a profile of its own.
    let folder = std::env::temp_dir().join(format!("linerate-print-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let printed = print_in(&folder, &browser, html, pdf);
    // What is left behind there does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    printed
}

fn print_in(folder: &Path, browser: &Path, html: &str, pdf: &Path) -> CmdResult<()> {
    let (page, made) = (folder.join("report.html"), folder.join("report.pdf"));
    std::fs::write(&page, html).with_context(|| format!("cannot write {}", page.display()))?;
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--disable-gpu", "--no-first-run"])
        .args(["--no-pdf-header-footer", "--disable-background-networking"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--print-to-pdf={}", made.display()));
    if nix::unistd::geteuid().is_root() {
        // A browser refuses to run as root otherwise; the page is ours and loads nothing.
        command.arg("--no-sandbox");
    }
    let page = format!("file://{}", page.display());
    let streams = command
        .arg(page)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = streams
        .spawn()
        .with_context(|| format!("cannot start {}", browser.display()))?;
    wait(child, browser)?;
    std::fs::copy(&made, pdf).with_context(|| {
        let (pdf, browser) = (pdf.display(), browser.display());
        format!("cannot write {pdf} as {browser} printed it")
    })?;
    Ok(())
}

fn wait(mut child: Child, browser: &Path) -> CmdResult<()> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if child
            .try_wait()
            .context("cannot wait for the browser")?
            .is_some()
        {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    // It may end by itself in between.
    let _ = child.kill();
    let _ = child.wait();
    let error = anyhow!("{} did not print within {DEADLINE:?}", browser.display());
    Err(Failure::failed(error))
}

fn find() -> CmdResult<PathBuf> {
    if let Some(named) = std::env::var_os(BROWSER_VARIABLE).filter(|name| !name.is_empty()) {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut places = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.find(|place| place.is_file()).ok_or_else(|| {
        let error = anyhow!(
            "cannot print to PDF: no Chromium in PATH ({})",
            NAMES.join(", ")
        );
        Failure::failed(error).next(format!(
            "set {BROWSER_VARIABLE} to one, or open report.html in any browser and print it"
        ))
    })
}
