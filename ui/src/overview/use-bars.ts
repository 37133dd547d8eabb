import { useEffect, useMemo } from 'preact/hooks'
import type { Basis } from '../api/answer.ts'
import { histogram } from '../api/summaries.ts'
import {
  BARS_MAX,
  type Bars,
  barsOf,
  NARROW_BARS_MAX,
  planBuckets,
  sumOf,
} from '../model/histogram/buckets.ts'
import { questionOf } from '../model/query.ts'
import { spanOf } from '../model/range.ts'
import { usePage } from '../parts/page.ts'
import { type Loaded, useLoad } from '../parts/use-load.ts'

const NARROW_PX = 700

/**
 * The histogram of the range. It contains all types, so that Warnings are counted whichever type is
 * selected.
 */
export function useBars(): Loaded<Bars> & { readonly basis: Basis | undefined } {
  const { client, query, nowMs, foundWarnings } = usePage()
  const filters = { ...query, type: '' }
  const { data, ...load } = useLoad(
    async (signal) => {
      const barsMax = window.innerWidth < NARROW_PX ? NARROW_BARS_MAX : BARS_MAX
      const plan = planBuckets(spanOf(query.range, nowMs), { barsMax })
      const asked = { filters, span: plan, buckets: plan.parts, signal }
      return { plan, ...(await histogram(client, asked)) }
    },
    { what: [client, questionOf(filters)], when: [nowMs] },
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
  return { ...load, data: bars, basis: data?.basis }
}
