//! A browser opens the page: every chart is whole in each width and theme, nothing is cut, and
//! nothing is reported as an error.
//!
//! Needs Chromium. Without it the tests print that they were skipped, and fail where CI=true.

use std::path::Path;
use std::process::Command;

use linerate_model::analysis::Analysis;
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

/// Looks at the page in frames of these widths in pixels: `look` is a function of a frame's window and
/// document, run when all is there; returns what it returned for each, between bars.
fn look(browser: &str, page: &str, widths: &[u32], look: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("report.html"), page).expect("a page is written");
    // A window of the browser is never as narrow as a phone, but a frame can be.
    let frames: String = widths
        .iter()
        .map(|width| {
            format!(
                "<iframe src=report.html style='width:{width}px;height:700px;border:0'></iframe>"
            )
        })
        .collect();
    let frame = format!(
        "<body>{frames}<script>onload = () => {{ document.title = Array.from(frames, \
         (frame) => ({look})(frame, frame.document)).join('|'); }}</script>"
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

/// Counts the shown drawings, and lists texts that are cut, or lie upon another or upon the plot.
const LABELS: &str = r#"(window, page) => {
    const wrong = [];
    const shown = [...page.querySelectorAll("svg.chart")].filter((svg) => svg.getBoundingClientRect().width > 0);
    for (const svg of shown) {
        const whole = svg.getBoundingClientRect();
        const scale = whole.width / svg.viewBox.baseVal.width;
        const [[left], [bottom, top]] = JSON.parse(svg.dataset.axes);
        const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
        texts.forEach(([words, box], at) => {
            if (box.left < whole.left - 1 || box.right > whole.right + 1 || box.top < whole.top - 1
                || box.bottom > whole.bottom + 1 || box.right > window.innerWidth) wrong.push("cut: " + words);
            if (box.right > whole.left + left * scale && box.bottom > whole.top + top * scale
                && box.top < whole.top + bottom * scale) wrong.push("in the plot: " + words);
            for (const [other, its] of texts.slice(at + 1))
                if (box.left < its.right && its.left < box.right && box.top + 2 < its.bottom && its.top + 2 < box.bottom)
                    wrong.push(words + " upon " + other);
        });
    }
    return shown.length + " drawings; " + wrong.join("; ");
}"#;

fn figure_count(analysis: &Analysis) -> usize {
    analysis
        .chapters
        .iter()
        .map(|chapter| chapter.figures.len())
        .sum()
}

#[test]
fn every_chart_is_whole_in_each_width_and_on_paper() {
    let Some(browser) = chromium() else { return };
    for study in [fixture::study(), fixture::spoiled(&"unbroken".repeat(40))] {
        let expected = format!("{} drawings; ", figure_count(&study));
        let page = html(&study);
        let widths = [360, 390, 576, 640, 1280];
        let found = look(browser, &page, &widths, LABELS);
        assert_eq!(found, [&*expected; 5].join("|"), "{widths:?}");
        let paper = page.replace("@media print", "@media all");
        assert_ne!(paper, page);
        assert_eq!(look(browser, &paper, &[650], LABELS), expected, "paper");
    }
}

#[test]
fn curves_have_the_colours_of_the_theme() {
    let Some(browser) = chromium() else { return };
    let page = html(&fixture::study());
    let colors = r#"(window, page) => ["light", "dark"].map((theme) => {
        page.documentElement.dataset.theme = theme;
        const of = (part, what) => window.getComputedStyle(page.querySelector(part))[what];
        return of(".chart .line", "stroke") + of(".chart .title", "fill") + of("marker", "color");
    }).join(" ")"#;
    let (light, dark) = ("rgb(10, 98, 181)", "rgb(95, 176, 255)");
    let (ink, bright) = ("rgb(20, 25, 31)", "rgb(232, 236, 240)");
    let expected = format!("{light}{ink}{light} {dark}{bright}{dark}");
    assert_eq!(look(browser, &page, &[800], colors), expected);
}

#[test]
fn the_pointer_and_the_arrow_keys_tell_a_points_value() {
    let Some(browser) = chromium() else { return };
    let page = html(&fixture::study());
    let told = r#"(window, page) => {
        const box = page.getElementById("figure-buffer-throughput-plot");
        box.scrollIntoView();
        const key = (key) => box.dispatchEvent(new window.KeyboardEvent("keydown", { key }));
        const tip = () => (page.getElementById("tip") || { textContent: "nothing" }).textContent;
        key("ArrowRight");
        const first = tip();
        key("Escape");
        const closed = tip();
        const frame = box.querySelector(".chart.page").getBoundingClientRect();
        const [, x, y] = box.querySelector(".v").getAttribute("d").match(/M([\d.]+) ([\d.]+)/);
        const scale = frame.width / 680;
        const at = { clientX: frame.left + x * scale + 3, clientY: frame.top + y * scale + 3 };
        box.dispatchEvent(new window.PointerEvent("pointermove", at));
        return [first, closed, tip()].join(" | ");
    }"#;
    let told = look(browser, &page, &[1000], told);
    let parts: Vec<&str> = told.split(" | ").collect();
    assert_eq!(parts.len(), 3, "{told}");
    assert!(parts[0].contains("KiB"), "{told}");
    assert_eq!(parts[1], "nothing");
    assert!(
        parts[2].contains("Mbit/s") && parts[2].contains("KiB"),
        "{told}"
    );
}

#[test]
fn a_curve_can_be_hidden() {
    let Some(browser) = chromium() else { return };
    let page = html(&fixture::study());
    let hidden = r#"(window, page) => {
        const figure = page.getElementById("figure-buffer-throughput");
        const count = () => figure.querySelectorAll("svg.chart g[display=none]").length;
        const button = figure.querySelector(".legend button");
        button.click();
        const once = count();
        button.click();
        return once + " " + count();
    }"#;
    // One curve in the drawing for the page and in that for a phone.
    assert_eq!(look(browser, &page, &[1000], hidden), "2 0");
}

#[test]
fn a_page_opens_without_an_error() {
    let Some(browser) = chromium() else { return };
    let opened = open(browser, &fixture::study());
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    assert!(opened.document.contains("Dark theme") || opened.document.contains("Light theme"));
}

#[test]
fn words_from_outside_do_not_run() {
    let Some(browser) = chromium() else { return };
    let attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\
                  <svg onload=\"document.title='owned'\">";
    let opened = open(browser, &fixture::spoiled(attack));
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    assert!(!opened.document.contains("<title>owned</title>"));
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

/// Says by how many pixels a page is too wide for its window.
const EXCESS: &str =
    "(window, page) => page.documentElement.scrollWidth - page.documentElement.clientWidth";

#[test]
fn no_page_scrolls_sideways() {
    let Some(browser) = chromium() else { return };
    let long = fixture::spoiled(&"unbroken".repeat(40));
    for page in [html(&fixture::study()), html(&long)] {
        assert_eq!(look(browser, &page, &[360, 640, 1280], EXCESS), "0|0|0");
    }
}

/// Names the tables that are neither behind a click nor seen in full height.
const UNSEEN_TABLES: &str = r#"(window, page) => [...page.querySelectorAll("table")]
    .filter((table) => !table.closest("details:not([open])"))
    .filter((table) => {
        const [box, rows] = [table.getBoundingClientRect(), table.rows.length];
        const style = window.getComputedStyle(table);
        return box.width < 100 || box.height < 16 * rows || style.clipPath !== "none";
    })
    .map((table) => table.textContent.slice(0, 40)).join("; ")"#;

#[test]
fn tables_are_seen_in_each_width() {
    let Some(browser) = chromium() else { return };
    let page = html(&fixture::study());
    let widths = [360, 390, 576, 640, 1280];
    assert_eq!(look(browser, &page, &widths, UNSEEN_TABLES), "||||");
}
