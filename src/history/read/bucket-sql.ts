import type { SqlValues } from './sql-values.ts'

/** The buckets of a histogram in SQL. Times are integers: milliseconds since 1970. */
export interface BucketSql {
  /** As `Buckets` of memory: -1 before the first bucket, and their number after the last. */
  of(ms: string): string
  /** When a bucket begins, and the one before it ends. */
  startOf(bucket: string): string
}

export function bucketsSql(bounds: readonly number[], values: SqlValues): BucketSql {
  const count = bounds.length - 1
  const [first = 0, end = 0] = [bounds[0], bounds[count]]
  const within = isEven(bounds) ? evenBuckets(first, end, count) : listedBuckets(bounds, values)
  return {
    of: (ms) =>
      `CASE WHEN ${ms} < ${first} THEN -1 WHEN ${ms} >= ${end} THEN ${count} ELSE ${within.of(ms)} END`,
    startOf: within.startOf,
  }
}

/** Whether all buckets have the same length, but for milliseconds that cannot be divided. */
function isEven(bounds: readonly number[]): boolean {
  const count = bounds.length - 1
  const [first = 0, end = 0] = [bounds[0], bounds[count]]
  return (
    Number.isSafeInteger((end - first) * count) &&
    bounds.every((ms, index) => ms === first + Math.floor((index * (end - first)) / count))
  )
}

function evenBuckets(first: number, end: number, count: number): BucketSql {
  const length = end - first
  return {
    of: (ms) => `((${ms} - ${first} + 1) * ${count} - 1) // ${length}`,
    startOf: (bucket) => `${first} + ((${bucket}) * ${length}) // ${count}`,
  }
}

/** Takes long: a list is searched for each row. */
function listedBuckets(bounds: readonly number[], values: SqlValues): BucketSql {
  const list = values.integers(bounds)
  return {
    of: (ms) => `len(list_filter(${list}, lambda bound: bound <= ${ms})) - 1`,
    startOf: (bucket) => `${list}[${bucket} + 1]`,
  }
}
