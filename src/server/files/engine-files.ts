/** The files that are followed for the engine: the clusters file and the retention policy. */
import { ClustersFile } from '../../clusters/clusters-file.ts'
import type { Log } from '../../lib/log/log.ts'
import { withFlagName } from '../../options/flag-errors.ts'
import type { Options } from '../../options/options.ts'
import { PolicyFile } from '../../retention/policy-file.ts'
import type { EngineFiles } from '../engine.ts'
import type { FilePollStatus } from '../metrics/files.ts'

export interface OpenedFiles extends EngineFiles {
  /** Undefined without `--clusters-file`. */
  readonly clusters: ClustersFile | undefined
  /** Undefined without `--retention-policy-file`. */
  readonly policy: PolicyFile | undefined
  /** Stops polling them. */
  stop(): void
}

/** Rejects when a file cannot be used; the error names the flag. */
export async function openEngineFiles(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<OpenedFiles> {
  const clusters = await openClusters(options, log, polls)
  const policy = await openPolicy(options, log, polls)
  const stop = () => {
    clusters?.stop()
    policy?.stop()
  }
  return { clusters, policy, stop }
}

async function openClusters(
  { clustersFile: path }: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<ClustersFile | undefined> {
  if (path === undefined) return undefined
  const flag = '--clusters-file'
  const options = { log: log.child({ logger: 'clusters' }), onPoll: polls?.(flag) }
  return withFlagName(flag, ClustersFile.open(path, options))
}

async function openPolicy(
  { retentionPolicyFile: path, eventTtlMs: lifetime }: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<PolicyFile | undefined> {
  if (path === undefined) return undefined
  const flag = '--retention-policy-file'
  const options = { lifetime, log: log.child({ logger: 'retention' }), onPoll: polls?.(flag) }
  return withFlagName(flag, PolicyFile.open(path, options))
}
