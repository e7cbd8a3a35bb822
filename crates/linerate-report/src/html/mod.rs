//! The page: one HTML file that opens without a network.

use linerate_model::analysis::Analysis;
use maud::{DOCTYPE, html as markup};

/// Returns the report as one HTML file without external references.
pub fn html(analysis: &Analysis) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (analysis.title) } }
            body { pre { (crate::markdown(analysis)) } }
        }
    };
    page.into_string()
}
