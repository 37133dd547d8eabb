/**
 * Days of a busy cluster as Parquet files, made by SQL alone: a million events take some ten seconds.
 * Event `n` of a day is the same in every run. One in 50 is an event of the day before that occurred
 * again; one in ten was seen more than once.
 */
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { EVENT_COLUMNS, SORT_COLUMNS } from '../../src/history/engine/columns.ts'
import type { InputFile } from '../../src/history/engine/protocol.ts'
import { dateOf } from '../../src/history/manifest.ts'

export interface MadeDays {
  readonly folder: string
  readonly cluster: string
  /** The number of the first day since 1970. */
  readonly firstDay: number
  readonly days: number
  /** Events of each day. */
  readonly events: number
}

export const DAY_MS: number = 24 * 3_600_000
const ROW_GROUP = 20_480
/** An object of each day: a pod that is restarted again and again. */
export const STEADY_OBJECT = { namespace: 'shop-7', kind: 'Pod', name: 'checkout-0' } as const

type Template = readonly [kind: string, by: string, type: string, reason: string, note: string]

const TEMPLATES: readonly Template[] = [
  ...normal('Pod', 'kubelet', 'Pulling', 'Pulling image "IMAGE"'),
  ...normal('Pod', 'kubelet', 'Pulled', 'Successfully pulled image "IMAGE" in NUMBERms'),
  ...normal('Pod', 'kubelet', 'Created', 'Created container app of OBJECT from IMAGE'),
  ...normal('Pod', 'kubelet', 'Started', 'Started container app of OBJECT'),
  ...normal('Pod', 'kubelet', 'Killing', 'Stopping container app, grace period 30s'),
  ...normal('Pod', 'default-scheduler', 'Scheduled', 'Successfully assigned OBJECT to NODE'),
  ...normal(
    'ReplicaSet',
    'replicaset-controller',
    'SuccessfulCreate',
    'Created pod: OBJECT-NUMBER',
  ),
  ...normal(
    'ReplicaSet',
    'replicaset-controller',
    'SuccessfulDelete',
    'Deleted pod: OBJECT-NUMBER',
  ),
  ...normal('Deployment', 'deployment-controller', 'ScalingReplicaSet', 'Scaled up to NUMBER'),
  ...normal('Job', 'job-controller', 'Completed', 'Job completed after NUMBER milliseconds'),
  ...normal(
    'Node',
    'node-controller',
    'RegisteredNode',
    'Node NODE event: Registered in Controller',
  ),
  [
    'Pod',
    'kubelet',
    'Warning',
    'BackOff',
    'Back-off restarting failed container app in pod OBJECT',
  ],
  ['Pod', 'kubelet', 'Warning', 'Unhealthy', 'Readiness probe failed: timeout after NUMBER ms'],
  ['Pod', 'kubelet', 'Warning', 'FailedMount', 'MountVolume failed for volume "data" of OBJECT'],
  ['Pod', 'kubelet', 'Warning', 'OOMKilling', 'Out of memory: Killed process NUMBER (java)'],
  [
    'Pod',
    'default-scheduler',
    'Warning',
    'FailedScheduling',
    '0/500 nodes: NUMBER Insufficient cpu',
  ],
  ['Job', 'job-controller', 'Warning', 'BackoffLimitExceeded', 'Job OBJECT has reached its limit'],
]

/** Six of seven events are Normal. */
function normal(kind: string, by: string, reason: string, note: string): readonly Template[] {
  return Array.from({ length: 4 }, () => [kind, by, 'Normal', reason, note] as const)
}

/** Writes a file for each day, unless it is there already. */
export async function makeDays(
  connection: DuckDBConnection,
  made: MadeDays,
): Promise<readonly InputFile[]> {
  await mkdir(made.folder, { recursive: true })
  const files: InputFile[] = []
  for (let day = 0; day < made.days; day++) files.push(await makeDay(connection, made, day))
  return files
}

async function makeDay(
  connection: DuckDBConnection,
  { folder, cluster, firstDay, events }: MadeDays,
  day: number,
): Promise<InputFile> {
  const date = dateOf((firstDay + day) * DAY_MS)
  const path = join(folder, `${events}-${date}.parquet`)
  const rollupPath = join(folder, `${events}-${date}.rollup.parquet`)
  if ((await sizeOf(path)) === 0) {
    const form = `(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${ROW_GROUP})`
    const sorted = `SELECT * FROM (${eventsOf(firstDay + day, events)}) ORDER BY ${SORT_COLUMNS.join()}`
    await connection.run(`COPY (${sorted}) TO '${path}' ${form}`)
  }
  if ((await sizeOf(rollupPath)) === 0) {
    await connection.run(
      `COPY (${rollupOf(path)}) TO '${rollupPath}' (FORMAT parquet, COMPRESSION zstd)`,
    )
  }
  const startMs = (firstDay + day) * DAY_MS
  const times = [startMs, startMs + DAY_MS - 1] as const
  const file = {
    name: path,
    bytes: await sizeOf(path),
    sha256: '',
    rows: events,
    sequences: [firstDay + day, firstDay + day],
    seen: times,
    occurred: [startMs - DAY_MS, times[1]],
    namespaces: ['', '\u{10ffff}'],
    kinds: ['', '\u{10ffff}'],
    objects: ['', '\u{10ffff}'],
    rollup: { name: rollupPath, bytes: await sizeOf(rollupPath), sha256: '' },
  } as const
  return { cluster, date, path, rollupPath, file }
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

/** Occurrences at the hour of the row are enough to measure reading. */
function rollupOf(path: string): string {
  return `SELECT date_trunc('hour', last_seen)::TIMESTAMP_MS AS hour, namespace, type, reason,
    regarding_kind AS kind, controller, sum(list_sum([s.count FOR s IN occurrences]))::BIGINT AS occurrences,
    count(*) FILTER (NOT again) AS events
    FROM read_parquet('${path}') GROUP BY ALL ORDER BY ALL`
}

function eventsOf(day: number, events: number): string {
  const templates = TEMPLATES.map(
    ([kind, by, type, reason, note], index) =>
      `(${index}, '${kind}', '${by}', '${type}', '${reason}', '${note}')`,
  ).join()
  const startMs = day * DAY_MS
  const { namespace, kind, name } = STEADY_OBJECT
  return `
    WITH templates(t, kind, reporter, type, reason, text) AS (VALUES ${templates}),
    numbers AS (
      SELECT i, i % 50 = 0 AS again, i % 10 = 1 OR i % 50 = 0 AS is_series,
        hash(i, ${day}) AS h,
        (hash(i, ${day}, 1) % 1000000 / 1e6) AS r,
        (hash(i, ${day}, 2) % ${TEMPLATES.length})::INTEGER AS t,
        ${startMs} + (i * ${DAY_MS / events})::BIGINT AS last_ms
      FROM range(${events}) AS numbers(i)
    ),
    things AS (
      SELECT numbers.*, templates.* EXCLUDE (t),
        i % 20000 = 7 AS is_steady,
        CASE WHEN kind = 'Pod' THEN (28000 * r * r * r)::INTEGER + ${day % 1000} * 2000
          ELSE (2000 * r * r)::INTEGER END AS object,
        'node-' || lpad((h % 500)::VARCHAR, 3, '0') AS node_name,
        last_ms - CASE WHEN is_series THEN 60000 + (h % 21600000)::BIGINT ELSE 0 END AS first_ms,
        CASE WHEN is_series THEN 2 + (h % 200)::BIGINT ELSE 1 END AS times
      FROM numbers JOIN templates USING (t)
    ),
    named AS (
      SELECT *,
        CASE WHEN is_steady THEN '${namespace}' WHEN kind = 'Node' THEN 'default'
          ELSE ['shop', 'billing', 'search', 'platform', 'media', 'data', 'identity'][1 + object % 7]
            || '-' || object % 60 END AS ns,
        CASE WHEN is_steady THEN '${kind}' ELSE kind END AS own_kind,
        CASE WHEN is_steady THEN '${name}' WHEN kind = 'Node' THEN node_name
          ELSE ['checkout', 'cart', 'api', 'worker', 'indexer', 'gateway', 'mailer'][1 + object % 7]
            || '-' || object % 977 || CASE WHEN kind = 'Pod' THEN '-' || substr(md5(object::VARCHAR), 1, 9)
            || '-' || substr(md5('p' || object), 1, 5) ELSE '' END END AS own_name
      FROM things
    ),
    noted AS (
      SELECT *,
        replace(replace(replace(replace(text, 'OBJECT', ns || '/' || own_name), 'NODE', node_name),
          'IMAGE', 'registry.example/' || ns || '/app:v1.' || h % 400), 'NUMBER', (h % 10000)::VARCHAR) AS own_note,
        own_name || '.' || lpad(to_hex(CASE WHEN again THEN ${day - 1} ELSE ${day} END::BIGINT * ${events} + i), 16, '18') AS event_name,
        md5(CASE WHEN again THEN ${day - 1} ELSE ${day} END || ':' || CASE WHEN again THEN i + 1 ELSE i END) AS m
      FROM named
    ),
    rows AS (
      SELECT *,
        substr(m, 1, 8) || '-' || substr(m, 9, 4) || '-4' || substr(m, 14, 3) || '-8' || substr(m, 18, 3) || '-' || substr(m, 21) AS event_uid,
        make_timestamp(last_ms * 1000)::TIMESTAMP_MS AS seen_at,
        make_timestamp(first_ms * 1000)::TIMESTAMP_MS AS first_at,
        md5(own_name || ns) AS om
      FROM noted
    )
    SELECT ${EVENT_COLUMNS.map(({ name, type }) => `(${VALUES[name] ?? "''"})::${type} AS ${name}`).join()}
    FROM rows`
}

const REGARDED_UID = `substr(om, 1, 8) || '-' || substr(om, 9, 4) || '-4' || substr(om, 14, 3) || '-9' || substr(om, 18, 3) || '-' || substr(om, 21)`

/** The SQL of each column; the others are empty. */
const VALUES: Readonly<Record<string, string>> = {
  again: 'again',
  namespace: 'ns',
  regarding_kind: 'own_kind',
  regarding_name: 'own_name',
  last_seen: 'seen_at',
  first_seen: 'first_at',
  written: 'seen_at',
  name: 'event_name',
  uid: 'event_uid',
  type: 'type',
  reason: 'reason',
  controller: 'reporter',
  reporting_controller: 'reporter',
  reporting_instance: 'node_name',
  source_component: "CASE WHEN reporter = 'kubelet' THEN reporter ELSE '' END",
  source_host: "CASE WHEN reporter = 'kubelet' THEN node_name ELSE '' END",
  note: 'own_note',
  count: 'times',
  occurrences:
    "[{'first': first_at, 'last': seen_at, 'count': CASE WHEN again THEN 1 + times // 2 ELSE times END, 'is_open': again}]",
  workload_kind: "CASE WHEN own_kind = 'Pod' THEN 'Deployment' ELSE own_kind END",
  workload_name: "regexp_extract(own_name, '^[a-z]+-[0-9]+')",
  workload_rule: "CASE WHEN own_kind = 'Pod' THEN 'name' ELSE 'self' END",
  node: "CASE WHEN own_kind = 'Pod' THEN node_name ELSE '' END",
  pattern: '(hash(text) % 4294967296)',
  regarding_namespace: "CASE WHEN own_kind = 'Node' THEN '' ELSE ns END",
  regarding_uid: REGARDED_UID,
  regarding_api_version: "CASE WHEN own_kind IN ('Pod', 'Node') THEN 'v1' ELSE 'apps/v1' END",
  regarding_resource_version: '(h % 100000000)',
  regarding_field_path: "CASE WHEN own_kind = 'Pod' THEN 'spec.containers{app}' ELSE '' END",
  labels: 'MAP {}',
  resource_version: 'last_ms',
  sequence: 'last_ms // 86400000',
  trailer: "CASE WHEN is_series THEN encode(substr(m, 1, 16)) ELSE ''::BLOB END",
  json: `'{"metadata":{"resourceVersion":"' || last_ms || '","name":"' || event_name || '","namespace":"' || ns
    || '","uid":"' || event_uid || '","creationTimestamp":"' || strftime(first_at, '%Y-%m-%dT%H:%M:%SZ')
    || '"},"eventTime":"' || strftime(first_at, '%Y-%m-%dT%H:%M:%S.%fZ') || '","reportingController":"' || reporter
    || '","reportingInstance":"' || node_name || '","action":"Observing","reason":"' || reason
    || '","regarding":{"kind":"' || own_kind || '","namespace":"' || ns || '","name":"' || own_name || '","uid":"'
    || ${REGARDED_UID} || '","apiVersion":"v1","resourceVersion":"' || h % 100000000 || '"},"note":' || to_json(own_note)::VARCHAR
    || ',"type":"' || type || '","deprecatedCount":' || times || ',"deprecatedLastTimestamp":"'
    || strftime(seen_at, '%Y-%m-%dT%H:%M:%SZ') || '"}'`,
}
