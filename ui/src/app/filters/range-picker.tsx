import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import {
  inputTime,
  isLong,
  PRESETS,
  type Preset,
  readInputTime,
  spanOf,
} from '../../model/range.ts'
import { spanText, utcTime } from '../../model/times.ts'
import { usePage } from '../../parts/page.ts'
import { useServerStatus } from '../../parts/server/status.ts'

const PRESET_TITLES = {
  '15m': 'The last 15 minutes',
  '1h': 'The last hour',
  '6h': 'The last 6 hours',
  '24h': 'The last 24 hours',
  '7d': 'The last 7 days',
  '30d': 'The last 30 days',
  '90d': 'The last 90 days',
} as const

/** Selects the time range: until now, or between two times. */
export function RangePicker(): JSX.Element {
  const { query, change } = usePage()
  const { range } = query
  const { hasHistory } = useServerStatus()
  const [isEdited, setIsEdited] = useState(false)
  const isCurrent = (preset: Preset): boolean => 'last' in range && range.last === preset
  const isFixed = !('last' in range)
  return (
    <>
      <fieldset class="range">
        <legend class="hidden">Time range</legend>
        {PRESETS.filter((one) => hasHistory || !isLong(one) || isCurrent(one)).map((preset) => (
          <button
            key={preset}
            type="button"
            title={PRESET_TITLES[preset]}
            aria-pressed={isCurrent(preset)}
            onClick={() => {
              setIsEdited(false)
              change({ range: { last: preset } })
            }}
          >
            {preset}
          </button>
        ))}
        <button
          type="button"
          aria-pressed={isFixed}
          aria-expanded={isEdited}
          title={isFixed ? `${spanText(range)} local time` : 'Between two times'}
          onClick={() => setIsEdited(!isEdited)}
        >
          {isFixed ? spanText(range) : 'Custom'}
        </button>
      </fieldset>
      {isEdited && <CustomRange onDone={() => setIsEdited(false)} />}
    </>
  )
}

function CustomRange({ onDone }: { readonly onDone: () => void }): JSX.Element {
  const { query, change, nowMs } = usePage()
  const span = spanOf(query.range, nowMs)
  const [from, setFrom] = useState(inputTime(span.fromMs))
  const [to, setTo] = useState(inputTime(span.toMs))
  const first = useRef<HTMLInputElement>(null)
  const fromMs = readInputTime(from)
  const toMs = readInputTime(to)
  const isValid = fromMs < toMs
  return (
    <form
      class="custom-range"
      aria-label="Custom time range"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isValid) return
        change({ range: { fromMs, toMs } })
        onDone()
      }}
    >
      <label>
        From{' '}
        <input
          ref={first}
          type="datetime-local"
          step={1}
          value={from}
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <label>
        to{' '}
        <input
          type="datetime-local"
          step={1}
          value={to}
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={!isValid}>
        Apply
      </button>
      <span class="muted">
        {isValid
          ? `local time; in UTC ${utcTime(fromMs)} to ${utcTime(toMs)}`
          : 'The range must begin before it ends.'}
      </span>
    </form>
  )
}
