//! The program as its users meet it, in one test binary: 23 would wait for each other, and link the
//! same crates 23 times.

mod cli_abuse;
mod cli_agent;
mod cli_capture;
mod cli_disk;
mod cli_lines;
mod cli_peers;
mod cli_usage;
mod cli_watch;
mod cli_workloads;
mod common;
mod compare;
mod explain;
mod fleet;
mod groups;
mod iperf3_client;
mod iperf3_current;
mod iperf3_server;
mod lab_datagrams;
mod lab_knobs;
mod lab_named;
mod lab_prove;
mod lab_queues;
mod lab_refine;
mod lab_search;
mod lab_strangers;
mod lab_truth;
mod netperf_peer;
mod old_bundles;
mod one_port;
mod run_capture;
mod trace;
mod uperf;
mod whole_loss;
mod whole_run;
mod whole_study;
