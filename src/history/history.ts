/** The second tier of events: the archive, everything that writes it, and everything that reads it. */
import type { KnownHistory } from '../election/known-history.ts'
import type { EtcdClient } from '../etcd/client.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane } from '../lib/run-queue.ts'
import type { Totals } from '../retention/account/totals.ts'
import type { RetentionPolicy } from '../retention/policy.ts'
import type { EventStorage } from '../storage/storage.ts'
import { ArchiveFiles, type ArchiveFilesOptions } from './archive-files.ts'
import { ArchiveState } from './archive-state.ts'
import { Catalogue } from './catalogue.ts'
import type { EngineProcess } from './engine/engine-process.ts'
import type { ReaderJobs, WriterJobs } from './engine/protocol.ts'
import { writeJobsOf } from './engine/writer.ts'
import { ArchiveReader, type ArchiveReaderOptions } from './tiers/archive-reader.ts'
import { tiersOf } from './tiers/tiers.ts'
import { Archiver } from './write/archiver.ts'
import { Upkeep } from './write/upkeep.ts'

const MIB = 1024 * 1024
/** What DuckDB may hold to write a segment, and to merge files. */
const WRITER_MEMORY_BYTES = 160 * MIB
export const MERGER_MEMORY_BYTES: number = 512 * MIB
/**
 * Of both, in the memory of the container. A merge of more than that is rare and can wait: if memory is
 * short, the kernel ends that process first.
 */
export const WRITING_MEMORY_BYTES: number = WRITER_MEMORY_BYTES + MERGER_MEMORY_BYTES / 2
/** Processes that have had nothing to do for so long end, and are started again when they have. */
const MERGER_IDLE_MS_MAX = 10_000
const READER_IDLE_MS_MAX = 10 * 60_000
/** Queries that run at a time. */
const QUERIES = 2

export interface HistorySettings extends ArchiveFilesOptions {
  readonly segmentMs: number
  readonly segmentBytes: number
  readonly readerMemoryBytes: number
  readonly readerThreads: number
  readonly queryTimeoutMs: number
}

export interface HistoryOptions {
  readonly settings: HistorySettings
  readonly client: EtcdClient
  readonly prefix: string
  readonly replica: string
  readonly storage: Pick<EventStorage, 'list' | 'watch'>
  readonly etcdHistory: KnownHistory
  readonly policy: () => RetentionPolicy
  readonly totals: () => Totals
  /** Whether etcd and memory have room for events that have expired. */
  readonly hasRoom: () => boolean
  readonly onQuery?: ArchiveReaderOptions['onQuery']
  readonly lane: Lane
  readonly log: Log
}

interface Engines {
  readonly writer: EngineProcess<WriterJobs>
  readonly merger: EngineProcess<WriterJobs>
  readonly reader: EngineProcess<ReaderJobs>
}

export class History {
  readonly files: ArchiveFiles
  readonly catalogue: Catalogue
  readonly state: ArchiveState
  readonly archiver: Archiver
  readonly upkeep: Upkeep
  readonly reader: ArchiveReader

  private constructor(options: HistoryOptions, files: ArchiveFiles, engines: Engines) {
    const { settings, client, prefix, replica, log, lane, storage, policy, totals } = options
    const { etcdHistory, hasRoom } = options
    const { store, cache, uploads } = files
    this.files = files
    this.catalogue = new Catalogue({ client, prefix, replica, store, etcdHistory, log })
    const { catalogue } = this
    this.state = new ArchiveState({ catalogue, name: settings.url, hasRoom })
    this.upkeep = new Upkeep({
      catalogue,
      store,
      cache,
      jobs: writeJobsOf(engines.merger),
      uploads,
      classesOf: (cluster) => policy().history.classesOf(cluster),
      log,
    })
    this.archiver = new Archiver({
      client,
      prefix,
      replica,
      storage,
      catalogue,
      store,
      jobs: writeJobsOf(engines.writer),
      uploads,
      upkeep: this.upkeep,
      isArchived: (stored) => policy().history.keepMsOf(stored) !== 'never-archived',
      segmentMs: settings.segmentMs,
      segmentBytes: settings.segmentBytes,
      lane,
      log,
    })
    this.reader = new ArchiveReader({
      catalogue,
      cache,
      engine: engines.reader,
      timeoutMs: settings.queryTimeoutMs,
      onQuery: options.onQuery,
      tiersOf: (scope, pointer) =>
        tiersOf(scope, { policy: policy(), totals: totals(), pointer, nowMs: Date.now() }),
    })
  }

  /** Rejects when the URL is not valid, or a folder cannot be created. */
  static async open(options: HistoryOptions): Promise<History> {
    const { settings, log } = options
    log.info('Events are archived, and read from there when they have expired', {
      history: settings.url,
    })
    const files = await ArchiveFiles.open(settings)
    const { readerMemoryBytes: memoryBytes, readerThreads: threads } = settings
    return new History(options, files, {
      writer: await files.writer('segment', { memoryBytes: WRITER_MEMORY_BYTES }),
      merger: await files.writer('merge', {
        memoryBytes: MERGER_MEMORY_BYTES,
        idleMsMax: MERGER_IDLE_MS_MAX,
      }),
      reader: await files.reader('query', {
        memoryBytes,
        threads,
        connections: QUERIES,
        idleMsMax: READER_IDLE_MS_MAX,
      }),
    })
  }

  /** Runs until aborted. Rejects on a bug only. */
  async run(signal: AbortSignal): Promise<void> {
    await using _files = this.files
    await Promise.all([this.catalogue.run(signal), this.archiver.run(signal)])
  }

  /** Called when nothing proves that etcd is still in the same history. */
  forget(): void {
    this.catalogue.forget()
  }
}
