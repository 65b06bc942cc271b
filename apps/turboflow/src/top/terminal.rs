// SPDX-License-Identifier: Apache-2.0
//! The screen: drawn, refreshed, and restored however the run ends.

use std::io::{Stdout, stdout};
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use turboflow_top::{BIN_NS, Colours, Picture, Screen, draw};

use super::keys::key_of;
use super::watch::{Metering, Watch};
use crate::exit::Outcome;
use crate::record::FinishedRun;
use crate::signals::STOP;

/// Maximum delay in noticing a signal.
const TICK: Duration = Duration::from_millis(100);

/// Restores the terminal. Errors are ignored, because there is no other place to report them.
pub(super) fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

/// The terminal while it shows the screen.
struct Display(Terminal<CrosstermBackend<Stdout>>);

impl Display {
    fn enter() -> anyhow::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enable_raw_mode().context("cannot read keys from this terminal")?;
        let entered = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                restore();
                Err(error).context("cannot draw on this terminal")
            }
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        restore();
    }
}

/// Shows what is metered until the user quits.
pub(super) fn run(screen: Screen, watch: Watch, metering: Metering) -> anyhow::Result<Outcome> {
    let mut show = ScreenLoop {
        display: Display::enter()?,
        colours: colours(),
        screen,
        watch,
        arranged: Picture::default(),
        refreshed: None,
        is_stale: true,
        run: Run::Metering(metering),
    };
    while !STOP.asked() && !show.step()? {}
    let ScreenLoop { display, run, .. } = show;
    drop(display);
    let ended = match run {
        Run::Metering(metering) => metering.end()?,
        Run::Over(ended) => *ended,
    };
    Ok(ended.say_losses())
}

/// A run in progress, or its end.
enum Run {
    Metering(Metering),
    Over(Box<FinishedRun>),
}

struct ScreenLoop {
    display: Display,
    colours: Colours,
    screen: Screen,
    watch: Watch,
    /// The displayed picture, filtered and sorted.
    arranged: Picture,
    refreshed: Option<Instant>,
    /// Whether the displayed data has changed since the last draw.
    is_stale: bool,
    run: Run,
}

impl ScreenLoop {
    /// Refreshes what is due, draws, and handles keys for a while. Returns whether to quit.
    fn step(&mut self) -> anyhow::Result<bool> {
        let is_over = matches!(&self.run, Run::Metering(metering) if metering.is_over());
        // Interfaces that are gone have nothing more to show. A capture keeps its last picture.
        if is_over && self.watch.is_live {
            return Ok(true);
        }
        if is_over {
            self.finish()?;
        }
        let left = self.until_refresh();
        if left.is_zero() && !self.screen.is_paused {
            self.refreshed = Some(instant());
            self.watch.refresh(&self.screen);
            self.arrange();
        }
        if std::mem::take(&mut self.is_stale) {
            self.draw()?;
        }
        let left = self.until_refresh();
        self.listen(left.clamp(Duration::from_millis(1), TICK))
    }

    /// Shows the last picture of a capture that has ended.
    fn finish(&mut self) -> anyhow::Result<()> {
        let Run::Metering(metering) = &mut self.run else {
            return Ok(());
        };
        let ended = metering.join()?;
        self.watch.finish(&ended, &self.screen);
        self.arrange();
        self.run = Run::Over(Box::new(ended));
        Ok(())
    }

    fn arrange(&mut self) {
        self.arranged = self.screen.arrange(&self.watch.picture);
        self.is_stale = true;
    }

    fn until_refresh(&self) -> Duration {
        let interval = Duration::from_nanos(self.screen.interval * BIN_NS);
        let passed = self.refreshed.map(|at| instant() - at);
        passed.map_or(Duration::ZERO, |passed| interval.saturating_sub(passed))
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let shown = |frame: &mut Frame<'_>| {
            let (source, health) = (&self.watch.source, &self.watch.health);
            let buffer = frame.buffer_mut();
            draw(
                buffer,
                &self.screen,
                source,
                &self.arranged,
                health,
                self.colours,
            );
        };
        let drawn = self.display.0.draw(shown);
        drawn.context("cannot draw on this terminal").map(|_| ())
    }

    /// Handles the keys that arrive within `patience`. Returns whether to quit.
    fn listen(&mut self, patience: Duration) -> anyhow::Result<bool> {
        let mut patience = patience;
        while event::poll(patience).context("cannot read keys from this terminal")? {
            patience = Duration::ZERO;
            let event = event::read().context("cannot read keys from this terminal")?;
            let key = match &event {
                Event::Key(key) => key_of(key),
                _ => None,
            };
            let interval = self.screen.interval;
            if key.is_some_and(|key| self.screen.press(key)) {
                return Ok(true);
            }
            if interval != self.screen.interval && !self.screen.is_paused {
                self.watch.look(&self.screen);
            }
        }
        // Sort only once, after the last of several keys.
        if patience.is_zero() {
            self.arrange();
        }
        Ok(false)
    }
}

fn colours() -> Colours {
    let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_unwanted {
        Colours::None
    } else {
        Colours::Some
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a screen is refreshed by the clock on the wall"
)]
pub(super) fn instant() -> Instant {
    Instant::now()
}
