//! Rows as comma-separated text, with a head (RFC 4180). No value holds a comma or a quote.

use std::io::{self, Write};

use super::{COLUMNS, Row};

/// Writes rows as text.
pub struct CsvRows<W: Write> {
    output: W,
}

impl<W: Write> CsvRows<W> {
    /// Writes the head.
    ///
    /// # Errors
    ///
    /// If `output` cannot be written.
    pub fn new(mut output: W) -> io::Result<Self> {
        writeln!(output, "{}", COLUMNS.join(","))?;
        Ok(Self { output })
    }

    /// Writes one row.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        let maybe = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
        writeln!(
            self.output,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            row.file,
            row.frame,
            row.time_ns,
            row.connection,
            row.end,
            row.source,
            row.source_port,
            row.target,
            row.target_port,
            row.flag_letters(),
            row.sequence,
            maybe(row.acknowledgement),
            row.window_bytes,
            row.payload_bytes,
            maybe(row.flight_bytes),
            maybe(row.stamp),
            maybe(row.echo),
            row.kind(),
        )
    }

    /// Writes what is left and hands the output back.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}
