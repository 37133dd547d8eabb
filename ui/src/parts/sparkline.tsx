import type { JSX } from 'preact'

const WIDTH = 120
const HEIGHT = 20

export interface SparklineProps {
  /** One value for each part of the time range, oldest first. */
  readonly values: readonly number[]
  /** The chart in words, for screen readers. */
  readonly label: string
}

/** A small chart of occurrences over time. Its highest bar has the full height. */
export function Sparkline({ values, label }: SparklineProps): JSX.Element {
  const most = Math.max(1, ...values)
  const step = WIDTH / Math.max(1, values.length)
  const bars = values
    .map((value, index) => {
      if (value <= 0) return ''
      const height = Math.max(1.5, (value / most) * HEIGHT)
      const left = (index * step).toFixed(2)
      const width = Math.max(1, step - 0.6).toFixed(2)
      return `M${left} ${HEIGHT}v-${height.toFixed(2)}h${width}V${HEIGHT}z`
    })
    .join('')
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <path d={`M0 ${HEIGHT - 0.25}H${WIDTH}`} class="sparkline-ground" />
      <path d={bars} />
    </svg>
  )
}
