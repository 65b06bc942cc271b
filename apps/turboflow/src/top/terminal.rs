// SPDX-License-Identifier: Apache-2.0
//! The screen: drawn, refreshed, and given back as it was, however the run ends.

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
use crate::record::Ended;
use crate::signals::STOP;

/// How long a signal may go unheard.
const TICK: Duration = Duration::from_millis(100);

/// Gives the terminal back as it was. There is nobody to tell that it failed.
pub(super) fn restore() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

/// The terminal while it is a screen.
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

/// Shows what is metered until somebody has seen enough.
pub(super) fn run(screen: Screen, watch: Watch, metering: Metering) -> anyhow::Result<Outcome> {
    let mut show = Showing {
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
    let Showing { display, run, .. } = show;
    drop(display);
    let ended = match run {
        Run::Metering(metering) => metering.end()?,
        Run::Over(ended) => *ended,
    };
    Ok(ended.say_losses())
}

/// A run that goes on, or how it ended.
enum Run {
    Metering(Metering),
    Over(Box<Ended>),
}

struct Showing {
    display: Display,
    colours: Colours,
    screen: Screen,
    watch: Watch,
    /// The picture as it is shown: filtered and sorted.
    arranged: Picture,
    refreshed: Option<Instant>,
    /// Whether what is shown has changed since it was drawn.
    is_stale: bool,
    run: Run,
}

impl Showing {
    /// Refreshes what is due, draws, and listens to keys for a while. Says whether it is the end.
    fn step(&mut self) -> anyhow::Result<bool> {
        let is_over = matches!(&self.run, Run::Metering(metering) if metering.is_over());
        // There is nothing to see any more where all interfaces are gone; a capture has its end.
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

    /// The capture is over: from now on its last picture is shown.
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

    /// Does what keys ask for that come within that time. Says whether it is the end.
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
        // Sorting waits for the last of the keys that came together.
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
