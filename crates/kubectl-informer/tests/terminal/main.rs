//! `watch -o diff` in a pseudo-terminal.

#![cfg(unix)]

mod rate;
mod screen;

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc;

use informer_testkit::TestServer;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tokio::sync::watch;

/// The program in a terminal of its own.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    size: (u16, u16),
}

impl Terminal {
    /// Runs `kubectl informer` with the arguments, separated by spaces, for this server.
    fn start(
        server: &TestServer,
        size: (u16, u16),
        environment: &[(&str, &str)],
        line: &str,
    ) -> Self {
        let (rows, cols) = size;
        let pair = native_pty_system()
            .openpty(PtySize { rows, cols, ..PtySize::default() })
            .expect("there is a pseudo-terminal");
        // An optimised one, to measure.
        let program = std::env::var_os("INFORMER_PROGRAM");
        let mut command = CommandBuilder::new(
            program.unwrap_or_else(|| env!("CARGO_BIN_EXE_kubectl-informer").into()),
        );
        command.args(line.split(' '));
        command.args(["--server", &server.url()]);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        Self { child, master: pair.master, size }
    }

    /// Shows what the program writes on a screen from now on.
    fn on_screen(&self) -> watch::Receiver<Screen> {
        let mut reader = self.master.try_clone_reader().expect("the terminal can be read");
        let [rows, cols] = [self.size.0, self.size.1].map(|it| NonZeroU16::new(it).unwrap());
        let mut parser = vt100::Parser::new(rows, cols, 0);
        let (sender, receiver) = watch::channel(Screen::of(parser.screen()));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading from a terminal that no program has open any more fails on Linux.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                parser.process(&bytes[..read]);
                sender.send_replace(Screen::of(parser.screen()));
            }
        });
        receiver
    }

    /// The lines that the program writes. If they are not received, the terminal is full after a
    /// few hundred.
    fn lines(&self) -> mpsc::Receiver<String> {
        let mut reader = self.master.try_clone_reader().expect("the terminal can be read");
        let (sender, receiver) = mpsc::sync_channel(64);
        std::thread::spawn(move || {
            let (mut bytes, mut rest) = ([0; 65536], Vec::new());
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..read]);
                while let Some(end) = rest.iter().position(|it| *it == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }
        });
        receiver
    }

    /// Presses Ctrl-C and expects a good end.
    fn interrupt(mut self) {
        self.master.take_writer().unwrap().write_all(b"\x03").unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status:?}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
    }
}

/// What a screen shows.
struct Screen {
    /// The text, a line for each row.
    text: String,
    /// The text with colors and faintness as `<red>…</>`.
    painted: String,
}

impl Screen {
    fn of(screen: &vt100::Screen) -> Self {
        let (rows, cols) = screen.size();
        let mut painted = String::new();
        for row in 0..rows.get() {
            let mut last = "";
            let mut line = String::new();
            for cell in (0..cols.get()).filter_map(|col| screen.cell(row, col)) {
                let paint = match cell.fgcolor() {
                    vt100::Color::Default if cell.dim() => "dim",
                    vt100::Color::Default => "",
                    vt100::Color::Idx(1) => "red",
                    vt100::Color::Idx(2) => "green",
                    vt100::Color::Idx(_) | vt100::Color::Rgb(..) => "other",
                };
                if paint != last {
                    line += if last.is_empty() { "" } else { "</>" };
                    if !paint.is_empty() {
                        line = format!("{line}<{paint}>");
                    }
                    last = paint;
                }
                line += if cell.has_contents() { cell.contents() } else { " " };
            }
            line += if last.is_empty() { "" } else { "</>" };
            painted = painted + line.trim_end() + "\n";
        }
        Self { text: screen.contents(), painted: timeless(&painted) }
    }

    fn text(&self) -> String {
        timeless(&self.text)
    }
}

/// The text with `HH:MM:SSZ` for the times at the beginning of lines.
fn timeless(text: &str) -> String {
    let timeless = |line: &str| {
        let start = line.strip_prefix("<dim>").unwrap_or(line);
        let is_time = start.as_bytes().get(8) == Some(&b'Z') && start.as_bytes()[2] == b':';
        if is_time { line.replacen(&start[..9], "HH:MM:SSZ", 1) } else { line.to_owned() }
    };
    // What was there when the program began comes in no order.
    let lines = text.trim_end().lines().filter(|it| !it.contains("(initial)"));
    let lines: Vec<String> = lines.map(timeless).collect();
    lines.join("\n")
}
