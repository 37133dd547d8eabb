/** How the columns of a file are filled from the rows of a segment. */
import {
  BIGINT,
  BLOB,
  BOOLEAN,
  LIST,
  MAP,
  STRUCT,
  TIMESTAMP_MS,
  UINTEGER,
  VARCHAR,
} from '@duckdb/node-api'
import type { EventFields, ObjectReference } from '../../storage/event-fields.ts'
import type { Span } from '../../storage/occurrences.ts'
import type { ArchivedRow } from './archived-row.ts'
import {
  blobs,
  booleans,
  type ChunkColumn,
  type ColumnWriter,
  int64s,
  structLists,
  texts,
  uint32s,
} from './chunk.ts'

/** The latest state of an event and day, with what its earlier states had. */
export interface SegmentRow {
  readonly number: number
  /** The number of its cluster and day. */
  readonly part: number
  readonly row: ArchivedRow
  readonly latest: { readonly isAgain: boolean; readonly spans: readonly Span[] }
}

type Column = Omit<ChunkColumn<SegmentRow>, 'name'>

const text = (value: (row: ArchivedRow) => string): Column => ({
  type: VARCHAR,
  write: texts(({ row }) => value(row)),
})

const time = (value: (row: ArchivedRow) => number): Column => ({
  type: TIMESTAMP_MS,
  write: int64s(({ row }) => value(row)),
})

const integer = (value: (row: ArchivedRow) => number): Column => ({
  type: BIGINT,
  write: int64s(({ row }) => value(row)),
})

const SPANS = LIST(
  STRUCT({ first: TIMESTAMP_MS, last: TIMESTAMP_MS, count: BIGINT, is_open: BOOLEAN }),
)

const SPAN_FIELDS: readonly ColumnWriter<Span>[] = [
  int64s(({ firstMs }) => firstMs),
  int64s(({ lastMs }) => lastMs),
  int64s(({ count }) => count),
  booleans(({ isOpen }) => isOpen === true),
]

const LABEL_FIELDS: readonly ColumnWriter<ArchivedRow['labels'][number]>[] = [
  texts(([name]) => name),
  texts(([, value]) => value),
]

/** By name. A column that is missing is the same in all rows, or follows from others. */
const COLUMNS: Readonly<Record<string, Column>> = {
  again: { type: BOOLEAN, write: booleans(({ latest }) => latest.isAgain) },
  namespace: text(({ key }) => key.namespace),
  last_seen: time(({ fields }) => fields.lastSeenMs),
  first_seen: time(({ fields }) => fields.firstSeenMs),
  written: time(({ writtenAtMs }) => writtenAtMs),
  name: text(({ key }) => key.name),
  uid: text(({ uid }) => uid),
  type: text(({ fields }) => fields.type),
  reason: text(({ fields }) => fields.reason),
  action: text(({ fields }) => fields.action),
  reporting_controller: text(({ fields }) => fields.reportingController),
  reporting_instance: text(({ fields }) => fields.reportingInstance),
  source_component: text(({ fields }) => fields.sourceComponent),
  source_host: text(({ fields }) => fields.sourceHost),
  note: text(({ fields }) => fields.note),
  count: integer(({ fields }) => fields.occurrences),
  occurrences: { type: SPANS, write: structLists(({ latest }) => latest.spans, SPAN_FIELDS) },
  workload_kind: text(({ workload }) => workload.kind),
  workload_name: text(({ workload }) => workload.name),
  workload_rule: text(({ workload }) => workload.rule),
  node: text(({ node }) => node),
  pattern: { type: UINTEGER, write: uint32s(({ row }) => row.pattern) },
  ...referenceColumns('regarding', ({ regarding }) => regarding),
  ...referenceColumns('related', ({ related }) => related),
  labels: {
    type: MAP(VARCHAR, VARCHAR),
    write: structLists(({ row }) => row.labels, LABEL_FIELDS),
  },
  resource_version: integer(({ version }) => version),
  trailer: { type: BLOB, write: blobs(({ row }) => row.trailer) },
  json: text(({ json }) => json),
}

/** A function for each member is much faster than one that is given its name. */
function referenceColumns(
  object: string,
  read: (fields: EventFields) => ObjectReference,
): Readonly<Record<string, Column>> {
  return {
    [`${object}_kind`]: text(({ fields }) => read(fields).kind),
    [`${object}_namespace`]: text(({ fields }) => read(fields).namespace),
    [`${object}_name`]: text(({ fields }) => read(fields).name),
    [`${object}_uid`]: text(({ fields }) => read(fields).uid),
    [`${object}_api_version`]: text(({ fields }) => read(fields).apiVersion),
    [`${object}_resource_version`]: text(({ fields }) => read(fields).resourceVersion),
    [`${object}_field_path`]: text(({ fields }) => read(fields).fieldPath),
  }
}

/** The columns of the rows of a segment, of which the first two are in no file. */
export const SEGMENT_COLUMNS: readonly ChunkColumn<SegmentRow>[] = [
  { name: 'part', type: UINTEGER, write: uint32s(({ part }) => part) },
  { name: 'number', type: UINTEGER, write: uint32s(({ number }) => number) },
  ...Object.entries(COLUMNS).map(([name, column]) => ({ name, ...column })),
]
