//! Prints what can be read of this host: facts, availability, and one sample of each metric.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use linerate_observe::{ObserveConfig, facts, link_of_address, observers, route_device};

fn main() {
    let config = ObserveConfig {
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        lab: false,
        host_wide: true,
        threads: vec![("main".to_owned(), std::process::id().cast_signed())],
    };
    for fact in facts(&config).facts {
        println!("{:45} {:?}", fact.name, fact.value);
    }
    for mut observer in observers(&config) {
        let mut samples = Vec::new();
        observer.sample(&mut samples);
        println!("{:?}", observer.availability());
        for sample in samples {
            println!(
                "  {:28} {:16} {}",
                sample.metric.name(),
                sample.subject,
                sample.value
            );
        }
    }
    for peer in std::env::args().skip(1).flat_map(|peer| peer.parse()) {
        println!(
            "{peer}: owner {:?}, route {:?}",
            link_of_address(peer),
            route_device(peer)
        );
    }
}
