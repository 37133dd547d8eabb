import { useEffect, useMemo } from 'preact/hooks'
import { histogram } from '../api/summaries.ts'
import {
  BARS_MAX,
  type Bars,
  barsOf,
  NARROW_BARS_MAX,
  planBuckets,
  sumOf,
  zoneAt,
} from '../model/histogram/buckets.ts'
import { spanOf } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { type Loaded, useLoad } from '../parts/use-load.ts'

const NARROW_PX = 700

/** The histogram of the range. It has all types, so that Warnings are counted whatever is chosen. */
export function useBars(): Loaded<Bars> {
  const { client, query, nowMs, foundWarnings } = usePage()
  const { data, error, isLoading } = useLoad(
    async (signal) => {
      const span = spanOf(query.range, nowMs)
      const plan = planBuckets(span, {
        zoneMs: zoneAt(span.fromMs),
        barsMax: window.innerWidth < NARROW_PX ? NARROW_BARS_MAX : BARS_MAX,
      })
      const filters = { ...query, type: '' }
      return {
        plan,
        buckets: await histogram(client, { filters, span: plan, buckets: plan.count, signal }),
      }
    },
    [client, query, nowMs],
  )
  const warnings = useMemo(
    () => data && sumOf(barsOf(data.plan, data.buckets, 'Warning').warnings),
    [data],
  )
  useEffect(() => {
    foundWarnings(warnings)
    return () => foundWarnings(undefined)
  }, [warnings])
  const bars = useMemo(
    () => data && barsOf(data.plan, data.buckets, query.type),
    [data, query.type],
  )
  return { data: bars, error, isLoading }
}
