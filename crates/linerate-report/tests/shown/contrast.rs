//! Both themes hold the contrast that WCAG 2.2 asks for (success criteria 1.4.3 and 1.4.11).

const LIGHT: &str = include_str!("../../src/html/light.css");
const DARK: &str = include_str!("../../src/html/dark.css");

/// Least contrast of text, level AA.
const TEXT_MIN: f64 = 4.5;

/// Least contrast of lines and markers that carry meaning.
const GRAPHICS_MIN: f64 = 3.0;

/// Returns the relative luminance of a property's colour, WCAG 2.2 "relative luminance".
fn luminance(theme: &str, name: &str) -> f64 {
    let rest = theme
        .split(&format!("{name}: #"))
        .nth(1)
        .expect("the theme defines the colour");
    let channel = |at: usize| {
        let value = u8::from_str_radix(&rest[at..at + 2], 16).expect("six hexadecimal digits");
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn check(theme: &str, front: &str, back: &str, least: f64) {
    let (a, b) = (luminance(theme, front), luminance(theme, back));
    let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
    assert!(contrast >= least, "{front} on {back}: {contrast:.2}");
}

#[test]
fn black_on_white_is_21() {
    let theme = "--a: #000000;\n--b: #ffffff;";
    check(theme, "--a", "--b", 20.999);
}

#[test]
fn text_can_be_read() {
    for theme in [LIGHT, DARK] {
        for front in ["--ink", "--ink-soft", "--accent", "--warn"] {
            check(theme, front, "--page", TEXT_MIN);
            check(theme, front, "--raised", TEXT_MIN);
        }
        check(theme, "--bad", "--page", TEXT_MIN);
        check(theme, "--ink", "--warn-wash", TEXT_MIN);
        check(theme, "--warn", "--warn-wash", TEXT_MIN);
        check(theme, "--ink", "--accent-wash", TEXT_MIN);
        check(theme, "--ink-soft", "--accent-wash", TEXT_MIN);
        check(theme, "--accent", "--accent-wash", TEXT_MIN);
    }
}

#[test]
fn curves_can_be_seen() {
    for theme in [LIGHT, DARK] {
        for hue in 1..=6 {
            check(theme, &format!("--curve-{hue}"), "--page", GRAPHICS_MIN);
        }
        check(theme, "--computed", "--page", GRAPHICS_MIN);
        check(theme, "--published", "--page", GRAPHICS_MIN);
        check(theme, "--axis", "--page", GRAPHICS_MIN);
    }
}

#[test]
fn both_themes_define_the_same_properties() {
    let names = |theme: &str| -> Vec<String> {
        theme
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0.to_owned()))
            .collect()
    };
    assert_eq!(names(LIGHT), names(DARK));
}
