//! Rows as comma-separated text, with a head (RFC 4180). No value holds a comma or a quote.

use std::io::{self, Write};

use super::{COLUMNS, Column, Row};

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
        writeln!(output, "{}", COLUMNS.map(|(name, _)| name).join(","))?;
        Ok(Self { output })
    }

    /// Writes one row.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        for (at, (_, column)) in COLUMNS.iter().enumerate() {
            if at > 0 {
                self.output.write_all(b",")?;
            }
            match column {
                Column::U32(value) => write!(self.output, "{}", value(row))?,
                Column::U64(value) => write!(self.output, "{}", value(row))?,
                Column::Text(value) => self.output.write_all(value(row).as_bytes())?,
                Column::Maybe(value) => {
                    if let Some(value) = value(row) {
                        write!(self.output, "{value}")?;
                    }
                }
            }
        }
        self.output.write_all(b"\n")
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
