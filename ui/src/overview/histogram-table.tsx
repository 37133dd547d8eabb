import type { JSX } from 'preact'
import { type Bars, spanOfBars } from '../model/histogram/buckets.ts'
import type { Span } from '../model/range.ts'
import { spanText } from '../model/times.ts'

/** The bars as numbers, without the empty ones. */
export function HistogramTable({
  bars,
  onZoom,
}: {
  readonly bars: Bars
  readonly onZoom: (span: Span) => void
}): JSX.Element {
  const { plan, normal, warnings, estimated } = bars
  const rows = normal
    .map((count, index) => ({ index, normal: count, warnings: warnings[index] ?? 0 }))
    .filter((row) => row.normal + row.warnings > 0)
  return (
    <div class="histogram-table">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Warnings</th>
            <th scope="col">Normal</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const span = spanOfBars(plan, row.index, row.index)
            return (
              <tr key={row.index}>
                <th scope="row">
                  <button type="button" class="value" onClick={() => onZoom(span)}>
                    {spanText(span)}
                  </button>
                  {estimated[row.index] === true && ' (estimated)'}
                </th>
                <td>{row.warnings}</td>
                <td>{row.normal}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
