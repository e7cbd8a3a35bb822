//! The programs of a host, each with the CPUs that it uses.

use std::collections::BTreeMap;

use linerate_model::host::Program;

use super::Span;

/// One program over a span.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Its name and number: `nginx/812`.
    pub name: String,
    /// CPUs that it used.
    pub cpus: f64,
}

/// CPU time at three instants, in nanoseconds.
#[derive(Debug, Clone)]
struct Course {
    name: String,
    first: u64,
    before: u64,
    last: u64,
}

/// The programs that the last reading had.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    courses: BTreeMap<u32, Course>,
    /// Of the first reading, the one before the last, and the last.
    instants_ns: Option<[u64; 3]>,
}

impl Programs {
    /// Takes up one reading, made at `at_ns` of the host's clock.
    pub fn take(&mut self, at_ns: u64, programs: &[Program]) {
        // What came since the reading before began with nothing.
        let is_first = self.instants_ns.is_none();
        let [first_ns, _, last_ns] = self.instants_ns.unwrap_or([at_ns; 3]);
        self.instants_ns = Some([first_ns, last_ns, at_ns]);
        let mut courses = BTreeMap::new();
        for program in programs {
            let begun = if is_first { program.cpu_ns } else { 0 };
            let known = self.courses.remove(&program.pid);
            // A number is given again, and its time begins anew then.
            let known = known.filter(|known| known.last <= program.cpu_ns);
            let (first, before) = known.map_or((begun, begun), |known| (known.first, known.last));
            let course = Course {
                name: program.name.clone(),
                first,
                before,
                last: program.cpu_ns,
            };
            courses.insert(program.pid, course);
        }
        self.courses = courses;
    }

    /// Returns the programs that used CPU time over `span`, those with most first.
    pub fn busiest(&self, span: Span) -> Vec<Share> {
        let Some([first_ns, before_ns, last_ns]) = self.instants_ns else {
            return Vec::new();
        };
        let begin_ns = match span {
            Span::PerSecond => before_ns,
            Span::SinceStart => first_ns,
        };
        let length_ns = last_ns.saturating_sub(begin_ns) as f64;
        let used = |course: &Course| match span {
            Span::PerSecond => course.last - course.before,
            Span::SinceStart => course.last - course.first,
        };
        let shares = self.courses.iter().map(|(pid, course)| Share {
            name: format!("{}/{pid}", course.name),
            cpus: used(course) as f64 / length_ns,
        });
        let mut shares: Vec<Share> = shares.filter(|share| share.cpus > 0.0).collect();
        shares.retain(|share| share.cpus.is_finite());
        shares.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_sorted_by_what_they_used() {
        let mut programs = Programs::default();
        let at = |pid, name: &str, cpu_ns| Program {
            pid,
            name: name.to_owned(),
            cpu_ns,
        };
        programs.take(
            0,
            &[at(1, "init", 900), at(2, "hog", 100), at(3, "old", 50)],
        );
        assert_eq!(
            programs.busiest(Span::PerSecond),
            [],
            "one reading says nothing"
        );
        // 3 ended and its number was given again; 4 is new.
        programs.take(
            1000,
            &[
                at(1, "init", 900),
                at(2, "hog", 600),
                at(3, "new", 20),
                at(4, "late", 100),
            ],
        );
        let of = |span| -> Vec<(String, f64)> {
            let shares = programs.busiest(span).into_iter();
            shares.map(|share| (share.name, share.cpus)).collect()
        };
        let expected = [("hog/2", 0.5), ("late/4", 0.1), ("new/3", 0.02)]
            .map(|(name, cpus)| (name.to_owned(), cpus));
        assert_eq!(of(Span::PerSecond), expected);
        programs.take(2000, &[at(2, "hog", 600)]);
        let expected = [("hog/2".to_owned(), 0.25)];
        assert_eq!(programs.busiest(Span::SinceStart).len(), 1);
        let shares = programs.busiest(Span::SinceStart).into_iter();
        assert_eq!(
            shares.map(|one| (one.name, one.cpus)).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(programs.busiest(Span::PerSecond), []);
    }
}
