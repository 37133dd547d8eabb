/**
 * The columns of the Parquet files, in the order in which they are written. People query these
 * files with their own engines (docs/reference/history-files.md): a column is never renamed, and a
 * new one is added at the end. `cluster` and `date` are in the path of each file, not in it.
 */
export interface Column {
  readonly name: string
  /** The type in DuckDB's SQL. */
  readonly type: string
}

/** Occurrences that no earlier row of the same event has. `is_open` as in storage/occurrences.ts. */
const SPANS = 'STRUCT(first TIMESTAMP_MS, last TIMESTAMP_MS, count BIGINT, is_open BOOLEAN)[]'

export const EVENT_COLUMNS: readonly Column[] = [
  /** An earlier state of the event may be in another row. Rows without it come first in a file. */
  { name: 'again', type: 'BOOLEAN' },
  { name: 'namespace', type: 'VARCHAR' },
  { name: 'regarding_kind', type: 'VARCHAR' },
  { name: 'regarding_name', type: 'VARCHAR' },
  { name: 'last_seen', type: 'TIMESTAMP_MS' },
  { name: 'first_seen', type: 'TIMESTAMP_MS' },
  { name: 'written', type: 'TIMESTAMP_MS' },
  { name: 'name', type: 'VARCHAR' },
  /** That of the event or, of an event without one, `<namespace>/<name>`: never empty. */
  { name: 'uid', type: 'VARCHAR' },
  { name: 'type', type: 'VARCHAR' },
  { name: 'reason', type: 'VARCHAR' },
  { name: 'action', type: 'VARCHAR' },
  /** The controller in whichever field it is named, as in the field label of that name. */
  { name: 'controller', type: 'VARCHAR' },
  { name: 'reporting_controller', type: 'VARCHAR' },
  { name: 'reporting_instance', type: 'VARCHAR' },
  { name: 'source_component', type: 'VARCHAR' },
  { name: 'source_host', type: 'VARCHAR' },
  { name: 'note', type: 'VARCHAR' },
  /** As often as the event was observed until then, in all rows of it. */
  { name: 'count', type: 'BIGINT' },
  { name: 'occurrences', type: SPANS },
  { name: 'workload_kind', type: 'VARCHAR' },
  { name: 'workload_name', type: 'VARCHAR' },
  { name: 'workload_rule', type: 'VARCHAR' },
  { name: 'node', type: 'VARCHAR' },
  { name: 'pattern', type: 'UINTEGER' },
  { name: 'regarding_namespace', type: 'VARCHAR' },
  { name: 'regarding_uid', type: 'VARCHAR' },
  { name: 'regarding_api_version', type: 'VARCHAR' },
  { name: 'regarding_resource_version', type: 'VARCHAR' },
  { name: 'regarding_field_path', type: 'VARCHAR' },
  { name: 'related_kind', type: 'VARCHAR' },
  { name: 'related_namespace', type: 'VARCHAR' },
  { name: 'related_name', type: 'VARCHAR' },
  { name: 'related_uid', type: 'VARCHAR' },
  { name: 'related_api_version', type: 'VARCHAR' },
  { name: 'related_resource_version', type: 'VARCHAR' },
  { name: 'related_field_path', type: 'VARCHAR' },
  { name: 'labels', type: 'MAP(VARCHAR, VARCHAR)' },
  { name: 'resource_version', type: 'BIGINT' },
  /** The number of the segment that first had this row: of two rows of an event, the newer is higher. */
  { name: 'sequence', type: 'BIGINT' },
  /** What the server knows beyond the fields; see storage/trailer.ts. */
  { name: 'trailer', type: 'BLOB' },
  /** The event exactly as it was served in a list, with its resourceVersion. */
  { name: 'json', type: 'VARCHAR' },
]

/** A row has no more spans of occurrences: enough for one in every minute of its day. */
export const ROW_SPANS_MAX = 1_440

/** The order of the rows in a file. */
export const SORT_COLUMNS: readonly string[] = [
  'again',
  'namespace',
  'regarding_kind',
  'regarding_name',
  'last_seen',
]

/** Occurrences by the hour, written beside each file of events. */
export const ROLLUP_COLUMNS: readonly Column[] = [
  { name: 'hour', type: 'TIMESTAMP_MS' },
  { name: 'namespace', type: 'VARCHAR' },
  { name: 'type', type: 'VARCHAR' },
  { name: 'reason', type: 'VARCHAR' },
  { name: 'kind', type: 'VARCHAR' },
  { name: 'controller', type: 'VARCHAR' },
  { name: 'occurrences', type: 'BIGINT' },
  /** Rows whose event was not archived before that hour: each event is counted in its first row. */
  { name: 'events', type: 'BIGINT' },
]
