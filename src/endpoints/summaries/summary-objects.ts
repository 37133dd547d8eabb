/** The objects of summaries and histograms, in the form of stored events. */
import { hash } from 'node:crypto'
import type { ShownField } from '../../codec/encoders/summary-views.ts'
import type { Place } from '../../gate/target.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import type { BucketCount, SummaryGroup } from '../../storage/summary.ts'

const versionOffset = '{"metadata":{'.length

/** How many characters of a text are shown, since texts of events may have any length. */
const SHOWN_LENGTH_MAX = 1024

export interface ObjectContext {
  readonly cluster: string
  readonly place: Place
  readonly version: Version
}

/** A group of events. Without counts, only the rate of its value is known. */
export interface ShownGroup extends Partial<SummaryGroup> {
  readonly values: readonly string[]
  readonly ratePerMinute?: number | undefined
}

export function summaryObject(
  groupBy: readonly ShownField[],
  shown: ShownGroup,
  context: ObjectContext,
): StoredEvent {
  const group = Object.fromEntries(
    groupBy.map((field, index) => [field, bounded(shown.values[index] ?? '')]),
  )
  return objectOf(
    { name: nameOf(groupBy, shown.values), namespace: namespaceOf(context) ?? group['namespace'] },
    {
      group,
      workloadRule: shown.workloadRule,
      occurrences: shown.occurrences,
      before: shown.before,
      estimated: shown.isEstimated === true ? true : undefined,
      warnings: shown.warnings,
      events: shown.events,
      objects: shown.objects,
      ratePerMinute: shown.ratePerMinute,
      firstTime: timeOf(shown.firstMs),
      lastTime: timeOf(shown.lastMs),
      sampleNote: shown.note === undefined ? undefined : bounded(shown.note),
    },
    context,
  )
}

export function bucketObject(
  { startMs, endMs, counts }: { startMs: number; endMs: number; counts: readonly BucketCount[] },
  context: ObjectContext,
): StoredEvent {
  const name = new Date(startMs).toISOString().toLowerCase().replaceAll(':', '-')
  return objectOf(
    { name, namespace: namespaceOf(context) },
    {
      startTime: timeOf(startMs),
      endTime: timeOf(endMs),
      counts: counts.map((one) => ({ ...one, name: bounded(one.name) })),
    },
    context,
  )
}

/** The same group has the same name in every summary. */
function nameOf(groupBy: readonly ShownField[], values: readonly string[]): string {
  return hash('sha256', JSON.stringify([groupBy, values]), 'hex').slice(0, 10)
}

function objectOf(
  metadata: { readonly name: string; readonly namespace: string | undefined },
  members: Readonly<Record<string, unknown>>,
  { cluster, version }: ObjectContext,
): StoredEvent {
  const { name, namespace = '' } = metadata
  return new StoredBody({
    key: { cluster, namespace, name },
    body: Buffer.from(JSON.stringify({ metadata, ...members })),
    versionOffset,
    version,
    writtenAtMs: 0,
  })
}

function namespaceOf({ place }: ObjectContext): string | undefined {
  return 'namespace' in place ? place.namespace : undefined
}

function timeOf(ms: number | undefined): string | undefined {
  if (ms === undefined) return undefined
  // Six digits, as in all times with fractions.
  return new Date(ms).toISOString().replace('Z', '000Z')
}

function bounded(text: string): string {
  return text.slice(0, SHOWN_LENGTH_MAX).toWellFormed()
}
