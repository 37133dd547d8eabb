import type { FlagTable } from './flag.ts'
import { optionalPath, text } from './kinds.ts'
import { labelMistake } from './values.ts'

export interface ClusterOptions {
  /** The cluster of paths that do not begin with `/clusters/<name>`. */
  readonly clusterName: string
  readonly clustersFile: string | undefined
}

export const clusterFlags: FlagTable<ClusterOptions> = {
  clusterName: {
    name: 'cluster-name',
    topic: 'Clusters',
    kind: text('name', labelMistake),
    default: 'local',
    help: 'Name of the cluster whose events are served on paths without /clusters/<name>.',
  },
  clustersFile: {
    name: 'clusters-file',
    topic: 'Clusters',
    kind: optionalPath,
    default: undefined,
    help: 'File with the clusters to mirror, and who authorizes their readers. The server checks it for changes once a second.',
  },
}
