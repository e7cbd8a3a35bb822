//! A browser opens the page: every chart is whole in each width and theme, nothing is cut, and
//! nothing is reported as an error.
//!
//! Needs Chromium. Without it the tests print that they were skipped, and fail where CI=true.

use std::path::Path;
use std::process::Command;

use linerate_model::analysis::Analysis;
use linerate_report::Extent;

use crate::fixture;
use crate::fixture::traced::traced;

fn html(analysis: &Analysis) -> String {
    linerate_report::html(analysis, Extent::Answer)
}

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
    const shown = [...page.querySelectorAll("svg.chart")]
        .filter((svg) => svg.getBoundingClientRect().width > 0 && !svg.closest("details:not([open])"));
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

/// Counts the bars, lines and intervals of the shown drawings that take up room and have a colour.
const MARKS: &str = r#"(window, page) => {
    const seen = { bar: 0, line: 0, interval: 0 };
    for (const svg of page.querySelectorAll("svg.chart")) {
        if (!svg.getBoundingClientRect().width) continue;
        for (const kind in seen) for (const mark of svg.querySelectorAll("path." + kind)) {
            const [box, style] = [mark.getBoundingClientRect(), window.getComputedStyle(mark)];
            const paint = kind === "bar" ? style.fill : style.stroke;
            if (box.width + box.height > 0 && style.visibility === "visible" && paint !== "none") seen[kind]++;
        }
    }
    return Object.values(seen).join(" ");
}"#;

#[test]
fn paper_has_all_the_marks_of_a_screen() {
    let Some(browser) = chromium() else { return };
    let page = linerate_report::html(&fixture::study(), Extent::Full);
    let seen = look(browser, &page, &[1280], MARKS);
    let counts: Vec<u32> = seen
        .split(' ')
        .filter_map(|count| count.parse().ok())
        .collect();
    assert_eq!(counts.len(), 3, "{seen}");
    assert!(
        counts.iter().all(|count| *count > 0),
        "bars, lines, intervals: {seen}"
    );
    let paper = page.replace("@media print", "@media all");
    assert_ne!(paper, page);
    assert_eq!(look(browser, &paper, &[650], MARKS), seen);
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
        const count = () => figure.querySelectorAll("svg.chart g.curve[display=none]").length;
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

/// The sheets that reports are printed on, by their names in a style sheet.
const SHEETS: [&str; 2] = ["A4", "letter"];

#[test]
fn page_one_prints_on_one_page() {
    let Some(browser) = chromium() else { return };
    let mut unmeasured = fixture::study();
    unmeasured.recommendations.clear();
    for study in [
        fixture::study(),
        unmeasured,
        fixture::empty(),
        fixture::not_to_be_used(),
    ] {
        let alone = "</style><style>main, footer { display: none }</style>";
        let page = html(&study).replacen("</style>", alone, 1);
        for sheet in SHEETS {
            assert_eq!(pages(browser, &page, sheet), 1, "{}", study.answer.verdict);
        }
    }
}

/// Counts the pages that a browser prints on this sheet.
fn pages(browser: &str, page: &str, sheet: &str) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (html, pdf) = (
        folder.path().join("report.html"),
        folder.path().join("report.pdf"),
    );
    let size = format!("<style>@page {{ size: {sheet} }}</style></head>");
    std::fs::write(&html, page.replacen("</head>", &size, 1)).expect("a page is written");
    let printed = Command::new(browser)
        .args(
            flags(folder.path())
                .into_iter()
                .filter(|flag| flag != "--dump-dom"),
        )
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", html.display()))
        .output();
    printed.expect("chromium starts");
    let pdf = std::fs::read(pdf).expect("a page is printed");
    let count = |words: &str| {
        let all = pdf.windows(words.len());
        all.filter(|bytes| *bytes == words.as_bytes()).count()
    };
    // Points of an inch, as the browser writes them: what was asked for is what is counted.
    let box_of_sheet = match sheet {
        "A4" => "/MediaBox [0 0 594.9",
        _ => "/MediaBox [0 0 612 792]",
    };
    let pages = count("/Type /Page\n");
    assert_eq!(count(box_of_sheet), pages, "{sheet}");
    pages
}

#[test]
fn paper_leaves_shut_what_is_behind_a_click() {
    let Some(browser) = chromium() else { return };
    let study = fixture::study();
    for sheet in SHEETS {
        let shut = pages(browser, &html(&study), sheet);
        let full = linerate_report::html(&study, Extent::Full);
        let full = pages(browser, &full, sheet);
        // Page one, then at most a page a chapter.
        assert!(
            (2..=1 + study.chapters.len()).contains(&shut),
            "{shut} pages of {sheet}"
        );
        assert!(full > shut, "{full} and {shut} pages of {sheet}");
    }
}

/// Names words that a box cuts off, or that end beyond the window.
const CUT: &str = r#"(window, page) => {
    const cut = [];
    const walker = page.createTreeWalker(page.body, window.NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        const parent = node.parentElement;
        if (!node.textContent.trim() || parent.closest("script, style, svg, caption, .skip, .scroll")) continue;
        const isShut = parent.closest("details:not([open])") && !parent.closest("summary");
        // On paper some are left out.
        if (isShut || !parent.getClientRects().length) continue;
        const range = page.createRange();
        range.selectNodeContents(node);
        const box = range.getBoundingClientRect();
        if (box.width === 0 || box.left < -1 || box.right > window.innerWidth + 1) cut.push(node.textContent);
        for (let at = parent; at; at = at.parentElement) {
            const its = at.getBoundingClientRect();
            const hides = window.getComputedStyle(at).overflowX !== "visible" && at !== page.body && at !== page.documentElement;
            if (hides && box.right > its.right + 1) cut.push(node.textContent);
        }
    }
    return cut.join("; ");
}"#;

#[test]
fn no_words_are_cut_in_any_width() {
    let Some(browser) = chromium() else { return };
    for study in [
        fixture::study(),
        fixture::not_to_be_used(),
        fixture::spoiled(&"unbroken".repeat(40)),
    ] {
        let page = html(&study);
        assert_eq!(look(browser, &page, &[390, 640, 1280], CUT), "||");
        let paper = page.replace("@media print", "@media all");
        assert_eq!(look(browser, &paper, &[688], CUT), "");
    }
}

#[test]
fn a_link_opens_what_is_behind_a_click() {
    let Some(browser) = chromium() else { return };
    let page = html(&fixture::study());
    let opened = r##"(window, page) => {
        const go = (hash) => {
            window.location.hash = hash;
            window.dispatchEvent(new window.HashChangeEvent("hashchange"));
        };
        const trial = page.querySelector("tr[id^=trial-]");
        const before = trial.closest("details").open;
        go("#" + trial.id);
        go("#cautions");
        return [before, trial.closest("details").open, page.getElementById("cautions").open].join(" ");
    }"##;
    assert_eq!(look(browser, &page, &[1000], opened), "false true true");
}

/// Names words that are less than 60 of 255 lighter than what they stand on, in the dark.
const DIM: &str = r#"(window, page) => {
    page.documentElement.dataset.theme = "dark";
    const gray = (color) => {
        const [r, g, b, a] = color.match(/[\d.]+/g).map(Number);
        return a === 0 ? null : 0.3 * r + 0.59 * g + 0.11 * b;
    };
    const dim = new Set();
    for (const part of page.querySelectorAll("h1, h2, h3, p, dd, dt, td, th, pre, li, figcaption, svg.chart text")) {
        if (!part.textContent.trim() || !part.getClientRects().length) continue;
        const style = window.getComputedStyle(part);
        let behind = null;
        for (let at = part; at && behind === null; at = at.parentElement)
            behind = gray(window.getComputedStyle(at).backgroundColor);
        const own = gray(part instanceof window.SVGElement ? style.fill : style.color);
        if (behind !== null && Math.abs(own - behind) < 60) dim.add(part.tagName + " " + part.className);
    }
    return [...dim].join(", ");
}"#;

#[test]
fn a_capture_has_a_whole_page_in_each_width_and_on_paper() {
    let Some(browser) = chromium() else { return };
    for name in ["office.pcapng", &"unbroken".repeat(30)] {
        let page = linerate_report::trace_html(&traced(name));
        // The drawings of a section, twice.
        let widths = [390, 640, 1280];
        assert_eq!(
            look(browser, &page, &widths, LABELS),
            ["8 drawings; "; 3].join("|")
        );
        assert_eq!(look(browser, &page, &widths, CUT), "||");
        assert_eq!(look(browser, &page, &widths, EXCESS), "0|0|0");
        assert_eq!(look(browser, &page, &widths, UNSEEN_TABLES), "||");
        assert_eq!(look(browser, &page, &widths, DIM), "||", "dark");
        let paper = page.replace("@media print", "@media all");
        assert_ne!(paper, page);
        assert_eq!(
            look(browser, &paper, &[688], LABELS),
            "8 drawings; ",
            "paper"
        );
        assert_eq!(look(browser, &paper, &[688], CUT), "", "paper");
    }
}

#[test]
fn a_captures_pictures_can_be_zoomed() {
    let Some(browser) = chromium() else { return };
    let page = linerate_report::trace_html(&traced("office.pcapng"));
    let zoomed = r#"(window, page) => {
        const box = page.getElementById("sequence-1-plot");
        const [into, out] = box.parentElement.querySelectorAll(".zoom button");
        const key = (key, shiftKey) => box.dispatchEvent(new window.KeyboardEvent("keydown", { key, shiftKey }));
        const drawn = () => [...box.querySelectorAll("svg.chart")].filter((svg) => svg.getBoundingClientRect().width > 0);
        const axis = () => drawn().map((svg) => [...svg.querySelectorAll("text.middle:not(.title)")].map((text) => text.textContent).join(" ")).join("+");
        const said = () => box.parentElement.querySelector(".zoom span").textContent;
        const inside = () => drawn().every((svg) => {
            const whole = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].every((text) => {
                const at = text.getBoundingClientRect();
                return at.left >= whole.left - 1 && at.right <= whole.right + 1;
            });
        });
        const seen = [axis()];
        into.click(); into.click();
        seen.push(axis(), String(inside()), said());
        key("ArrowRight", true);
        seen.push(said());
        key("ArrowRight");
        seen.push(page.getElementById("tip").textContent);
        out.click();
        seen.push(said());
        key("0");
        seen.push(axis(), String(box.querySelectorAll(".close").length));
        return seen.join(" / ");
    }"#;
    for width in [390, 1280] {
        let told = look(browser, &page, &[width], zoomed);
        let parts: Vec<&str> = told.split(" / ").collect();
        let [whole, close, inside, said, moved, tip, wider, again, left] = parts[..] else {
            panic!("{told}")
        };
        // A second in all; a quarter of it in the middle, the same later, and half.
        assert_eq!(whole, "0 200 400 600 800", "{told}");
        assert!(
            close.starts_with("400 ") && close.ends_with(" 600"),
            "{told}"
        );
        assert_eq!(inside, "true", "{told}");
        let ends = |said: &str| -> (f64, f64) {
            let ends = said
                .strip_suffix(" ms")
                .and_then(|said| said.split_once(" to "));
            let (from, to) = ends.unwrap_or_else(|| panic!("{told}"));
            (from.parse().expect("a time"), to.parse().expect("a time"))
        };
        let ((from, to), (later_from, later_to)) = (ends(said), ends(moved));
        assert!(
            (370.0..380.0).contains(&from) && (615.0..625.0).contains(&to),
            "{told}"
        );
        assert!(later_from > from + 50.0 && later_to > to + 50.0, "{told}");
        assert!(tip.contains(" ms"), "{told}");
        let (wide_from, wide_to) = ends(wider);
        assert!(wide_to - wide_from > 1.9 * (to - from), "{told}");
        assert_eq!((again, left), (whole, "0"), "{told}");
    }
}

#[test]
fn a_captures_page_opens_without_an_error_and_prints() {
    let Some(browser) = chromium() else { return };
    let attack =
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let page = linerate_report::trace_html(&traced(attack));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("trace.html");
    std::fs::write(&path, &page).expect("the page can be written");
    let opened = visit(browser, folder.path(), &path);
    assert!(!opened.log.contains("CONSOLE"), "{}", opened.log);
    assert!(!opened.document.contains("<title>owned</title>"));
    // Four findings, two tables of forty rows, eight pictures.
    for sheet in SHEETS {
        let printed = pages(browser, &page, sheet);
        assert!((3..=14).contains(&printed), "{sheet}: {printed} pages");
    }
}
