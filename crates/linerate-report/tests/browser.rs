//! A browser opens the page: plotly draws every chart, and nothing is reported as an error.
//!
//! Needs Chromium. Without it the tests print that they were skipped, and fail where CI=true.

use std::path::Path;
use std::process::Command;

use linerate_model::analysis::{Analysis, Figure, Origin, Scale};
use linerate_report::html;

/// Made-up analyses.
#[expect(dead_code, reason = "the other tests use the partial study")]
mod fixture;

/// Time that the page's scripts may believe to have, in ms; the browser does not wait for it.
const VIRTUAL_MS: u32 = 8000;

/// What the browser made of a page.
struct Opened {
    /// The document after the scripts ran.
    document: String,
    /// What the browser logged.
    log: String,
}

#[expect(
    clippy::print_stdout,
    reason = "a skipped test is counted by its printed line"
)]
fn chromium() -> Option<&'static str> {
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let found = names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI needs chromium"
        );
        println!("skipped: no chromium");
    }
    found
}

fn open(browser: &str, analysis: &Analysis) -> Opened {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let page = folder.path().join("report.html");
    std::fs::write(&page, html(analysis)).expect("the page can be written");
    visit(browser, folder.path(), &page)
}

fn visit(browser: &str, folder: &Path, page: &Path) -> Opened {
    let output = Command::new(browser)
        .args(flags(folder))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts");
    Opened {
        document: String::from_utf8_lossy(&output.stdout).into_owned(),
        log: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn flags(folder: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--window-size=1280,1000",
        "--allow-file-access-from-files",
        "--dump-dom",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("--virtual-time-budget={VIRTUAL_MS}"));
    flags.push(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    flags
}

/// Returns the part of the document that plotly filled for the figure called `id`.
fn drawing<'a>(document: &'a str, id: &str) -> &'a str {
    let start = format!("id=\"figure-{id}-plot\"");
    let from = document.find(&start).expect("the chart's box is there");
    let length = document[from..].find("<script").expect("its data follows");
    &document[from..from + length]
}

fn check_drawn(figure: &Figure, drawing: &str) {
    assert!(
        drawing.contains("<svg class=\"main-svg\""),
        "{} was not drawn",
        figure.id
    );
    let bars = figure.x.scale == Scale::Category && figure.y.scale != Scale::Log;
    let as_bars = |origin: Origin| bars && origin != Origin::Computed;
    let expected = figure
        .curves
        .iter()
        .filter(|curve| as_bars(curve.origin))
        .count();
    assert_eq!(
        drawing.matches("class=\"trace bars\"").count(),
        expected,
        "{}",
        figure.id
    );
    let lines = drawing.matches("class=\"trace scatter").count();
    assert_eq!(lines, figure.curves.len() - expected, "{}", figure.id);
}

#[test]
fn every_chart_is_drawn_without_an_error() {
    let Some(browser) = chromium() else { return };
    let study = fixture::study();
    let opened = open(browser, &study);
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    for figure in study.chapters.iter().flat_map(|chapter| &chapter.figures) {
        check_drawn(figure, drawing(&opened.document, &figure.id));
    }
    assert!(opened.document.contains("Dark theme") || opened.document.contains("Light theme"));
}

#[test]
fn error_bars_stand_only_where_there_is_an_interval() {
    let Some(browser) = chromium() else { return };
    let opened = open(browser, &fixture::study());
    // Two measured curves with five intervals each; the limit and the published one have none.
    let drawing = drawing(&opened.document, "buffer-throughput");
    assert_eq!(drawing.matches("class=\"yerror\"").count(), 10);
}

#[test]
fn words_from_outside_do_not_run() {
    let Some(browser) = chromium() else { return };
    let attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\
                  <svg onload=\"document.title='owned'\">";
    let opened = open(browser, &fixture::spoiled(attack));
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    assert!(!opened.document.contains("<title>owned</title>"));
    assert!(
        opened.document.contains("main-svg"),
        "the charts are drawn all the same"
    );
}

#[test]
fn a_page_without_charts_opens_too() {
    let Some(browser) = chromium() else { return };
    let opened = open(browser, &fixture::empty());
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    assert!(
        opened
            .document
            .contains("Interrupted before the first trial ended.")
    );
}

/// Returns by how many pixels the page is too wide for a window of `width` pixels.
fn excess_width(browser: &str, analysis: &Analysis, width: u32) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("report.html"), html(analysis)).expect("a page is written");
    // A window of the browser is never as narrow as a phone, but a frame can be.
    let frame = format!(
        "<body><iframe src=report.html style='width:{width}px;height:700px;border:0'></iframe>\
         <script>onload = () => {{ const page = frames[0].document.documentElement;\
         document.title = page.scrollWidth - page.clientWidth; }}</script>"
    );
    let page = folder.path().join("frame.html");
    std::fs::write(&page, frame).expect("a page is written");
    let opened = visit(browser, folder.path(), &page);
    let title = opened
        .document
        .split("<title>")
        .nth(1)
        .and_then(|rest| rest.split('<').next());
    title.unwrap_or(&opened.log).to_owned()
}

#[test]
fn a_phone_need_not_scroll_sideways() {
    let Some(browser) = chromium() else { return };
    assert_eq!(excess_width(browser, &fixture::study(), 360), "0");
    let long = fixture::spoiled(&"unbroken".repeat(40));
    assert_eq!(excess_width(browser, &long, 360), "0");
}
