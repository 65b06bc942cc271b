// SPDX-License-Identifier: Apache-2.0
//! Translates keys of the terminal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use turboflow_top::Key;

/// The key that was pressed, if it has a function.
pub(super) fn key_of(event: &KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if is_control => Key::Interrupt,
        KeyCode::Char('n') if is_control => Key::Down,
        KeyCode::Char(_) if is_control || event.modifiers.contains(KeyModifiers::ALT) => {
            return None;
        }
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Down => Key::Down,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Home => Key::Home,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::Tab => Key::Tab,
        KeyCode::Up => Key::Up,
        _ => return None,
    })
}
