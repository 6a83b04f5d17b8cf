package term

import (
	"charm.land/lipgloss/v2"
)

// Styles of the few things that colour may say. Colour never stands alone: the
// same is always said in words. The sixteen basic colours suit dark and light
// terminals alike.

// Bold marks the answer in a line.
func Bold(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }

// Faint marks what may be skipped.
func Faint(s string) string { return lipgloss.NewStyle().Faint(true).Render(s) }

// Good marks a healthy state.
func Good(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Green).Render(s) }

// Caution marks what wants attention.
func Caution(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Yellow).Render(s) }

// Bad marks a failure.
func Bad(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Red).Render(s) }

// Accent marks what a chart or a table points at.
func Accent(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Cyan).Render(s) }
