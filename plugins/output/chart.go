package output

import (
	"io"
	"math"
	"strings"

	"charm.land/lipgloss/v2"
)

// Chart is an x-y chart in text: lines are drawn in Braille dots, points as
// marks, so that it reads without colour. Both axes are linear.
type Chart struct {
	// Title stands above, with the legend behind it.
	Title string
	// Width and Height are those of the plot in characters, axes excluded.
	Width, Height int
	// XLabel and YLabel name the axes; XTicks are labelled where there is room.
	XLabel, YLabel string
	XTicks         []float64
	// XMax and YMax end the axes, which begin at 0; 0 means the data's.
	XMax, YMax float64
	Series     []Series
	// Upright and Level are rules across the plot, each with a label.
	Upright, Level []Rule
}

// Series is one set of points. A Line is drawn through them, in order; a Mark,
// where it is not 0, is put on each.
type Series struct {
	Name  string
	Line  bool
	Mark  rune
	X, Y  []float64
	Style func(string) string
}

// Rule is a straight line across the plot at a value of an axis.
type Rule struct {
	At    float64
	Label string
}

const (
	uprightMark = '┊'
	levelMark   = '╌'
	dotsAcross  = 2
	dotsDown    = 4
)

// braille is the bit of each dot of a Braille character, by row and column.
var braille = [dotsDown][dotsAcross]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// cell is one character of the plot: a mark covers a line, a line a rule.
type cell struct {
	mark  rune
	dots  rune
	rule  rune
	style func(string) string
}

type plot struct {
	Chart
	cells [][]cell
	ticks []float64
}

// Write draws the chart, each line behind indent.
func (c Chart) Write(w io.Writer, indent string) error {
	p := plot{Chart: c}
	p.scale()
	p.cells = make([][]cell, c.Height)
	for row := range p.cells {
		p.cells[row] = make([]cell, c.Width)
	}
	for _, rule := range c.Level {
		p.level(rule)
	}
	for i, rule := range c.Upright {
		p.upright(rule, i)
	}
	for _, series := range c.Series {
		if series.Line {
			p.line(series)
		}
	}
	for _, series := range c.Series {
		p.marks(series)
	}
	_, err := io.WriteString(w, p.text(indent))
	return err
}

// scale ends the axes: x at the data's end, y at the next round tick.
func (p *plot) scale() {
	x, y := p.XMax, p.YMax
	for _, series := range p.Series {
		for i := range series.X {
			if p.XMax == 0 {
				x = max(x, series.X[i])
			}
			if p.YMax == 0 {
				y = max(y, series.Y[i])
			}
		}
	}
	if !(x > 0) {
		x = 1
	}
	if !(y > 0) {
		y = 1
	}
	p.XMax = x
	p.ticks = Ticks(y, max(2, p.Height/2))
	p.YMax = max(y, p.ticks[len(p.ticks)-1])
}

// Ticks returns round numbers from 0 to at least high, about n of them, each
// 1, 2 or 5 times a power of ten apart.
func Ticks(high float64, n int) []float64 {
	if !(high > 0) || math.IsInf(high, 0) || n < 1 {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(high/float64(n))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor*float64(n) >= high*(1-1e-9) {
			step *= factor
			break
		}
	}
	ticks := []float64{0}
	for at := step; ; at += step {
		ticks = append(ticks, at)
		if at >= high*(1-1e-9) {
			return ticks
		}
	}
}

// dotX and dotY are the position of a value in dots, from the left and from the
// top; column and row that of its character.
func (p *plot) dotX(x float64) int {
	return int(math.Round(x / p.XMax * float64(p.Width*dotsAcross-1)))
}

func (p *plot) dotY(y float64) int {
	return int(math.Round((1 - y/p.YMax) * float64(p.Height*dotsDown-1)))
}

func (p *plot) row(y float64) int { return min(p.dotY(y)/dotsDown, p.Height-1) }

func (p *plot) column(x float64) int { return min(p.dotX(x)/dotsAcross, p.Width-1) }

func (p *plot) dot(x, y int, style func(string) string) {
	column, row := x/dotsAcross, y/dotsDown
	if x < 0 || y < 0 || column >= p.Width || row >= p.Height {
		return
	}
	at := &p.cells[row][column]
	at.dots |= braille[y%dotsDown][x%dotsAcross]
	at.style = style
}

// line joins the points by straight strokes, dot by dot along the longer way.
func (p *plot) line(series Series) {
	for i := 1; i < len(series.X); i++ {
		x0, y0 := p.dotX(series.X[i-1]), p.dotY(series.Y[i-1])
		x1, y1 := p.dotX(series.X[i]), p.dotY(series.Y[i])
		steps := max(abs(x1-x0), abs(y1-y0), 1)
		for step := range steps + 1 {
			part := float64(step) / float64(steps)
			p.dot(x0+int(math.Round(part*float64(x1-x0))), y0+int(math.Round(part*float64(y1-y0))), series.Style)
		}
	}
}

func (p *plot) marks(series Series) {
	if series.Mark == 0 {
		return
	}
	for i := range series.X {
		if series.X[i] < 0 || series.X[i] > p.XMax || series.Y[i] < 0 || series.Y[i] > p.YMax {
			continue
		}
		p.put(p.row(series.Y[i]), p.column(series.X[i]), series.Mark, series.Style)
	}
}

func (p *plot) put(row, column int, mark rune, style func(string) string) {
	if row >= 0 && row < p.Height && column >= 0 && column < p.Width {
		p.cells[row][column].mark = mark
		p.cells[row][column].style = style
	}
}

// upright draws a rule; its label stands at the foot, that of the next rule one
// row higher.
func (p *plot) upright(rule Rule, nth int) {
	if rule.At < 0 || rule.At > p.XMax {
		return
	}
	column := p.column(rule.At)
	for row := range p.Height {
		p.cells[row][column].rule = uprightMark
	}
	start := column + 2
	if start+lipgloss.Width(rule.Label) > p.Width {
		start = column - 1 - lipgloss.Width(rule.Label)
	}
	p.write(p.Height-1-nth, start, rule.Label)
}

func (p *plot) level(rule Rule) {
	if rule.At < 0 || rule.At > p.YMax {
		return
	}
	row := p.row(rule.At)
	for column := range p.Width {
		p.cells[row][column].rule = levelMark
	}
	p.write(row, 1, " "+rule.Label+" ")
}

func (p *plot) write(row, column int, label string) {
	for _, r := range label {
		p.put(row, column, r, nil)
		column++
	}
}

func (c cell) text() string {
	text := " "
	switch {
	case c.mark != 0:
		text = string(c.mark)
	case c.dots != 0:
		text = string(rune(0x2800) + c.dots)
	case c.rule != 0:
		return string(c.rule)
	}
	if c.style != nil && text != " " {
		return c.style(text)
	}
	return text
}

// text puts the axes around the plot.
func (p *plot) text(indent string) string {
	labels := make([]string, p.Height)
	width := 0
	for _, tick := range p.ticks {
		label := Number(tick)
		labels[p.row(tick)] = label
		width = max(width, len(label))
	}
	var text strings.Builder
	text.WriteString(indent + p.Title + p.legend() + "\n")
	for row, cells := range p.cells {
		axis := "│"
		if labels[row] != "" {
			axis = "┤"
		}
		var line strings.Builder
		line.WriteString(strings.Repeat(" ", width-len(labels[row])) + labels[row] + " " + axis)
		for _, one := range cells {
			line.WriteString(one.text())
		}
		text.WriteString(indent + strings.TrimRight(line.String(), " ") + "\n")
	}
	ruler, numbers := p.xAxis()
	text.WriteString(indent + strings.Repeat(" ", width) + " └" + ruler + "\n")
	text.WriteString(strings.TrimRight(indent+strings.Repeat(" ", width+2)+numbers, " ") + "\n")
	return text.String()
}

func (p *plot) legend() string {
	var legend strings.Builder
	for _, series := range p.Series {
		if series.Name == "" {
			continue
		}
		mark := "⠒⠒"
		if series.Mark != 0 {
			mark = string(series.Mark)
		}
		if series.Style != nil {
			mark = series.Style(mark)
		}
		legend.WriteString("   " + mark + " " + series.Name)
	}
	return legend.String()
}

// xAxis is the ruler and the numbers below it. A number that would touch the
// one on its right is left out, so that the end of the range always shows.
func (p *plot) xAxis() (ruler, numbers string) {
	marks := []rune(strings.Repeat("─", p.Width))
	line := []rune(strings.Repeat(" ", p.Width+len(p.XLabel)+8))
	copy(line[p.Width+2:], []rune(p.XLabel))
	free := p.Width + 2
	for i := len(p.XTicks) - 1; i >= 0; i-- {
		if p.XTicks[i] < 0 || p.XTicks[i] > p.XMax {
			continue
		}
		column := p.column(p.XTicks[i])
		marks[column] = '┬'
		label := []rune(Number(p.XTicks[i]))
		start := max(0, column-len(label)/2)
		if start+len(label) > p.Width+1 {
			start = p.Width + 1 - len(label)
		}
		if start+len(label) >= free {
			continue
		}
		copy(line[start:], label)
		free = start
	}
	return string(marks), strings.TrimRight(string(line), " ")
}

func abs(n int) int { return max(n, -n) }
