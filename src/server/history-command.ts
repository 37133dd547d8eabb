/** `tidings history …`: opens etcd and the archive, without a server. */
import { hostname, userInfo } from 'node:os'
import { ArchiveFiles } from '../history/archive-files.ts'
import { Catalogue } from '../history/catalogue.ts'
import { purge } from '../history/commands/purge.ts'
import { recover } from '../history/commands/recover.ts'
import { verify } from '../history/commands/verify.ts'
import { writeJobsOf } from '../history/engine/writer.ts'
import { MERGER_MEMORY_BYTES } from '../history/history.ts'
import type { Log } from '../lib/log/log.ts'
import type { HistoryCommand } from '../options/history-commands.ts'
import { replicaName } from '../storage/etcd/control/control-values.ts'
import { Datastore } from '../storage/etcd/datastore.ts'

const HEALTH_TIMEOUT_MS = 2_000
/** Copies of files from a bucket; a command reads one after the other. */
const CACHE_BYTES = 2 * 1024 ** 3

export interface CommandParts {
  readonly log: Log
  /** Aborted by the first signal to stop. */
  readonly signal: AbortSignal
  /** Writes a line to standard output. */
  print(line: string): void
}

/** Whether all is well, so that scripts can ask: false if a file is missing or damaged. */
export async function runHistoryCommand(
  command: HistoryCommand,
  { log, signal, print }: CommandParts,
): Promise<boolean> {
  const { options } = command
  await using files = await ArchiveFiles.open({
    url: options.history,
    cacheDir: options.historyCacheDir,
    cacheBytes: CACHE_BYTES,
  })
  using datastore = openDatastore(options, log)
  const client = await datastore.open()
  const { store, cache, uploads } = files
  const replica = replicaName(hostname(), process.pid)
  const catalogue = new Catalogue({ client, prefix: options.etcdPrefix, replica, store, log })
  if (command.verb === 'recover') return await recover({ catalogue, store, print, signal })
  const jobs = writeJobsOf(await files.writer('command', { memoryBytes: MERGER_MEMORY_BYTES }))
  if (command.verb !== 'purge') {
    const { faults } = await verify({ catalogue, store, cache, jobs, print, signal })
    return faults === 0
  }
  const { cluster, namespace, beforeMs } = command.options
  const by = `${userInfo().username}@${hostname()}`
  const what = { cluster, namespace, beforeMs, by }
  await purge({ ...what, catalogue, store, cache, jobs, uploads, print, log, signal })
  return true
}

function openDatastore(
  { etcdServers, etcdCaFile, etcdCertFile, etcdKeyFile, etcdPrefix }: HistoryCommand['options'],
  log: Log,
): Datastore & Disposable {
  const datastore = new Datastore({
    servers: etcdServers,
    caFile: etcdCaFile,
    certFile: etcdCertFile,
    keyFile: etcdKeyFile,
    prefix: etcdPrefix,
    healthTimeoutMs: HEALTH_TIMEOUT_MS,
    log,
  })
  return Object.assign(datastore, { [Symbol.dispose]: () => datastore.close() })
}
