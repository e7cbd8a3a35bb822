//! Addresses into names: the kernel's from `/proc/kallsyms`, our own program's from its symbol table.

use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::text::{complete_lines, words};

/// Most symbols of one table; the kernel has some 200 000.
const SYMBOLS_MAX: usize = 4_000_000;
/// How far behind a symbol's begin an address may lie and still be in it: no function is longer,
/// and what lies behind the last symbol belongs to something unknown.
const FUNCTION_BYTES_MAX: u64 = 4 << 20;
/// The smallest page, in bytes: the functions of a module share none with those of another.
const PAGE_BYTES: u64 = 4 << 10;

/// Names by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Ascending by address.
    symbols: Vec<Symbol>,
    /// All names, one behind the other.
    text: String,
}

/// Where a symbol begins, and where its name and its module's lie in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    address: u64,
    begin: u32,
    name_length: u16,
    module_length: u16,
}

/// A function by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The module that it is part of, if it is one.
    pub(super) module: Option<&'a str>,
}

impl Symbols {
    fn push(&mut self, address: u64, name: &str, module: &str) {
        let lengths = (u16::try_from(name.len()), u16::try_from(module.len()));
        let (Ok(begin), (Ok(name_length), Ok(module_length))) =
            (u32::try_from(self.text.len()), lengths)
        else {
            return;
        };
        if self.symbols.len() >= SYMBOLS_MAX {
            return;
        }
        self.text.push_str(name);
        self.text.push_str(module);
        self.symbols.push(Symbol {
            address,
            begin,
            name_length,
            module_length,
        });
    }

    /// Puts the symbols in order; of several at one address the first stays.
    fn finish(mut self) -> Self {
        self.symbols.sort_by_key(|symbol| symbol.address);
        self.symbols.dedup_by_key(|symbol| symbol.address);
        self
    }

    /// Returns the function that `address` is in.
    ///
    /// Symbols have no end. Behind the last of a module may be a module that was loaded since, so only the rest
    /// of its page is believed to be its own.
    pub(super) fn find(&self, address: u64) -> Option<Named<'_>> {
        let behind = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..behind].last()?;
        let named = self.named(symbol)?;
        let next = self.symbols.get(behind).and_then(|next| self.named(next));
        let is_last = next.is_none_or(|next| next.module != named.module);
        let end = symbol.address | (PAGE_BYTES - 1);
        let is_beyond = address - symbol.address > FUNCTION_BYTES_MAX || is_last && address > end;
        (!is_beyond).then_some(named)
    }

    fn named(&self, symbol: &Symbol) -> Option<Named<'_>> {
        let begin = symbol.begin as usize;
        let middle = begin + usize::from(symbol.name_length);
        let end = middle + usize::from(symbol.module_length);
        Some(Named {
            name: self.text.get(begin..middle)?,
            module: self.text.get(middle..end).filter(|text| !text.is_empty()),
        })
    }
}

/// Returns the modules that are loaded, by name and address: `tcp_bbr 0xffffffffc0a21000`. What else a line
/// of `/proc/modules` says changes all the time.
pub(super) fn modules(proc_root: &Path) -> Vec<String> {
    // Absent where the kernel has no modules.
    let text = std::fs::read(proc_root.join("modules")).unwrap_or_default();
    let module = |line: &[u8]| {
        let mut words = words(line).map(String::from_utf8_lossy);
        Some(format!("{} {}", words.next()?, words.nth(4)?))
    };
    complete_lines(&text).filter_map(module).collect()
}

/// Returns the kernel's functions, or why they are not known.
pub(super) fn of_kernel(proc_root: &Path) -> Result<Symbols, String> {
    let path = proc_root.join("kallsyms");
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    kallsyms(&text).ok_or_else(|| {
        "the kernel hides its symbols (kernel.kptr_restrict): run the agent as root or with \
         CAP_SYSLOG"
            .to_owned()
    })
}

/// Reads lines such as `ffffffff81000000 T _text` and `ffffffffc0001000 t veth_xmit [veth]`; nothing
/// where the addresses are hidden, which is to say zero.
fn kallsyms(text: &[u8]) -> Option<Symbols> {
    let mut symbols = Symbols::default();
    for line in complete_lines(text) {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap_or(0);
        if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
            continue;
        }
        let module = words.next().unwrap_or_default();
        let module = module.trim_start_matches('[').trim_end_matches(']');
        symbols.push(address, name, module);
    }
    (!symbols.symbols.is_empty()).then(|| symbols.finish())
}

/// A piece of memory that a file was mapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    begin: u64,
    end: u64,
    path: String,
}

/// Our own program and the libraries that it is linked with.
#[derive(Debug, Default)]
pub(super) struct OwnProgram {
    mappings: Vec<Mapping>,
    executable: String,
    functions: Symbols,
}

impl OwnProgram {
    /// Reads the symbol table of this program; without one, functions have the name of their file.
    pub(super) fn read(proc_root: &Path) -> Self {
        let maps = std::fs::read(proc_root.join("self/maps")).unwrap_or_default();
        let mappings = mappings(&maps);
        let executable = std::fs::read_link(proc_root.join("self/exe")).unwrap_or_default();
        let executable = executable.to_string_lossy().into_owned();
        let begin = mappings
            .iter()
            .find(|mapping| mapping.path == executable)
            .map_or(0, |mapping| mapping.begin);
        let file = std::fs::read(proc_root.join("self/exe")).unwrap_or_default();
        Self {
            functions: functions(&file, begin).unwrap_or_default(),
            mappings,
            executable,
        }
    }

    /// Returns the name of what lies at `address`: a function of ours, or a library's file.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        let mapping = self
            .mappings
            .iter()
            .find(|mapping| (mapping.begin..mapping.end).contains(&address))?;
        if mapping.path == self.executable
            && let Some(named) = self.functions.find(address)
        {
            // Without the hash at the end.
            return Some(format!("{:#}", rustc_demangle::demangle(named.name)));
        }
        let file = PathBuf::from(&mapping.path);
        let file = file.file_name()?.to_string_lossy();
        Some(format!("[{file}]"))
    }
}

/// Returns the functions of the program in `file`, whose first byte is mapped to `begin`.
fn functions(file: &[u8], begin: u64) -> Option<Symbols> {
    let file = object::File::parse(file).ok()?;
    let linked = file.segments().map(|segment| segment.address()).min()?;
    let mut symbols = Symbols::default();
    for symbol in file.symbols() {
        let Some(offset) = symbol.address().checked_sub(linked) else {
            continue;
        };
        if symbol.kind() == SymbolKind::Text
            && !symbol.is_undefined()
            && let Ok(name) = symbol.name()
        {
            symbols.push(begin.wrapping_add(offset), name, "");
        }
    }
    Some(symbols.finish())
}

/// Reads lines such as `5555-7777 r-xp 00001000 08:01 42   /usr/bin/linerate`.
fn mappings(text: &[u8]) -> Vec<Mapping> {
    let line = |line: &[u8]| {
        let mut words = words(line);
        let range = std::str::from_utf8(words.next()?).ok()?;
        let (begin, end) = range.split_once('-')?;
        let path = words.nth(4)?;
        Some(Mapping {
            begin: u64::from_str_radix(begin, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            path: String::from_utf8_lossy(path).into_owned(),
        })
    };
    complete_lines(text).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000100 T _text\nffffffff81000200 t tcp_sendmsg\n\
        ffffffff81000180 D some_data\nffffffff81000150 W weak_one\nbad line\n\
        ffffffffc0001000 t veth_xmit\t[veth]\nffffffff81000200 T alias\n";

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let symbols = kallsyms(KALLSYMS.as_bytes()).expect("symbols");
        let check = |address, expected: Option<(&str, Option<&str>)>| {
            let found = symbols
                .find(address)
                .map(|named| (named.name, named.module));
            assert_eq!(found, expected, "{address:x}");
        };
        check(0xffff_ffff_8100_00ff, None);
        check(0xffff_ffff_8100_0100, Some(("_text", None)));
        check(0xffff_ffff_8100_014f, Some(("_text", None)));
        check(0xffff_ffff_8100_0190, Some(("weak_one", None)));
        check(0xffff_ffff_8100_0fff, Some(("tcp_sendmsg", None)));
        check(0xffff_ffff_c000_1001, Some(("veth_xmit", Some("veth"))));
        check(0xffff_ffff_f000_0000, None);
    }

    #[test]
    fn a_module_loaded_since_has_no_name_of_another() {
        let symbols = "ffffffff81000200 t tcp_sendmsg\nffffffffc0001000 t veth_xmit\t[veth]\n\
            ffffffffc0003f00 t veth_poll\t[veth]\nffffffffc0008000 t xt_match\t[xt]\n";
        let symbols = kallsyms(symbols.as_bytes()).expect("symbols");
        let name = |address| symbols.find(address).map(|named| named.name);
        assert_eq!(name(0xffff_ffff_c000_2f00), Some("veth_xmit"));
        assert_eq!(name(0xffff_ffff_c000_3fff), Some("veth_poll"));
        // Where tcp_bbr is now.
        assert_eq!(name(0xffff_ffff_c000_4000), None);
        assert_eq!(name(0xffff_ffff_c000_7fff), None);
        assert_eq!(name(0xffff_ffff_c000_9000), None);
    }

    #[test]
    fn modules_are_the_same_until_one_is_loaded() {
        let root = tempfile::tempdir().expect("a folder");
        let modules = |text: &str| {
            std::fs::write(root.path().join("modules"), text).expect("written");
            modules(root.path())
        };
        let one = modules("veth 45056 0 - Live 0xffffffffc0001000\n");
        assert_eq!(one, ["veth 0xffffffffc0001000"]);
        assert_eq!(modules("veth 45056 2 xt, Live 0xffffffffc0001000\n"), one);
        assert_ne!(modules("veth 45056 0 - Live 0xffffffffc0011000 (O)\n"), one);
        let two = "tcp_bbr 20480 1 - Live 0xffffffffc0004000\n\
            veth 45056 0 - Live 0xffffffffc0001000\n";
        assert_ne!(modules(two), one);
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(kallsyms(b"0000000000000000 T _text\n0000000000000000 t x\n").is_none());
        assert!(kallsyms(b"").is_none());
    }

    #[test]
    fn mappings_have_paths() {
        let text = "1000-2000 r-xp 00000000 08:01 42    /usr/bin/x\n\
            3000-4000 rw-p 00000000 00:00 0 \n7000-8000 r-xp 00000000 00:00 0   [vdso]\n";
        let paths: Vec<String> = mappings(text.as_bytes())
            .into_iter()
            .map(|mapping| mapping.path)
            .collect();
        assert_eq!(paths, ["/usr/bin/x", "[vdso]"]);
    }

    #[inline(never)]
    fn found_by_its_address() {}

    #[test]
    fn a_function_of_this_program_is_found() {
        let program = OwnProgram::read(Path::new("/proc"));
        let address = found_by_its_address as *const () as u64;
        let name = program.find(address).expect("a name");
        assert!(name.ends_with("found_by_its_address"), "{name}");
        assert_eq!(program.find(1), None);
    }
}
