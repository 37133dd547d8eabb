/**
 * Reads all control keys once, and finds those that this server did not write.
 *
 * A key that this version does not know is accepted if it has the form of those of later versions,
 * and if there is proof that the prefix is ours: a known key, whose value has its own form, or the
 * mark of the events.
 */
import type { EtcdClient, KeyValue } from '../../../etcd/client.ts'
import { controlKind, controlName, controlRange } from '../keys.ts'
import { isControlValue } from './control-values.ts'

/** Two for each mirror, of which no replica can carry ten thousand, and a handful. */
const keysMax = 25_000
/** The record of a mirror has some hundred bytes, or some for each of its namespaces. */
const bytesMax = 64 * 1024 * 1024
/**
 * A value of another program may have as many bytes as etcd accepts in a request (1.5 MiB), and etcd
 * builds a response as a whole: this small, it has at most 31 keys, however small those before were.
 */
const chunkBytes = 64 * 1024

export interface ControlScanOptions {
  readonly client: Pick<EtcdClient, 'scan'>
  readonly prefix: string
  /** Whether the mark of the events is there, and is ours. */
  readonly isMarked: boolean
  readonly signal: AbortSignal
}

export type ControlFindings =
  /** A key that this server did not write. */
  | { readonly foreign: Buffer }
  /** More than this server can have written: what there is too much of. */
  | { readonly excess: string }
  /** All keys are ours, or those of a later version. */
  | { readonly unknownCount: number; readonly firstUnknown: Buffer | undefined }

/** Who wrote a key, by its form: this version or an earlier one, a later one, another program. */
type Writer = 'ours' | 'later' | 'foreign'

/** Rejects with an EtcdError. */
export async function scanControlKeys(options: ControlScanOptions): Promise<ControlFindings> {
  const { client, prefix, signal } = options
  let isOurs = options.isMarked
  let unknownCount = 0
  let firstUnknown: Buffer | undefined
  let bytes = 0
  const range = { ...controlRange(prefix), chunkBytes }
  for await (const { kvs, count } of client.scan(range, { signal })) {
    if (count > keysMax) return { excess: `${count} keys` }
    const { ours, later = [], foreign } = Object.groupBy(kvs, (kv) => writerOf(kv, prefix))
    if (foreign?.[0] !== undefined) return { foreign: foreign[0].key }
    for (const { key, value } of kvs) bytes += key.length + value.length
    if (bytes > bytesMax) return { excess: `more than ${bytesMax} bytes` }
    isOurs ||= ours !== undefined
    unknownCount += later.length
    firstUnknown ??= later[0]?.key
  }
  if (firstUnknown !== undefined && !isOurs) return { foreign: firstUnknown }
  return { unknownCount, firstUnknown }
}

function writerOf({ key, value }: KeyValue, prefix: string): Writer {
  const name = controlName(prefix, key)
  if (name === undefined || !isControlValue(name, value)) return 'foreign'
  return controlKind(name) === undefined ? 'later' : 'ours'
}
