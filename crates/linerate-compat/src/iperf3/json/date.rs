//! Dates as e-mail writes them.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns `unix_s` as RFC 1123 has it, for instance "Fri, 20 Nov 2026 16:01:56 GMT".
///
/// Years of the Gregorian calendar by Hinnant's `civil_from_days`, from 1970 on: days are counted
/// from the first of March of year 0, in eras of 400 years with 146 097 days.
pub(super) fn written(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_by_coreutils() {
        let check = |unix_s, expected: &str| assert_eq!(written(unix_s), expected);
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT");
        check(1_795_190_516, "Fri, 20 Nov 2026 16:01:56 GMT");
        check(4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT");
        check(1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT");
    }
}
