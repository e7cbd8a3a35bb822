//! What people see of made-up analyses: the page in a browser and as it is written, text, colours.

/// Made-up analyses.
mod fixture;

mod browser;
mod contrast;
mod page;
mod text;
