/** `tidings dev --mirror`: options of a server that mirrors the user's cluster. */
import { writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Log } from '../lib/log/log.ts'
import { openUserContext, type UserContext } from './user-kubeconfig.ts'

export interface DevMirrorOptions {
  readonly clusterName: string
  readonly context: string | undefined
  readonly kubeconfig: string | undefined
}

/** The default of --cluster-name. */
const UNNAMED = 'local'

export interface DevMirror {
  readonly options: { readonly clusterName: string; readonly clustersFile: string }
  readonly context: UserContext
}

export async function devMirror(
  wanted: DevMirrorOptions,
  {
    folder,
    userFiles,
    log,
  }: {
    readonly folder: string
    /** The value of KUBECONFIG: a list of files. */
    readonly userFiles: string | undefined
    readonly log: Log
  },
): Promise<DevMirror> {
  const { kubeconfig } = wanted
  const listed = (userFiles ?? '').split(delimiter).filter((file) => file !== '')
  const usual = listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')]
  const opened = await openUserContext({
    files: kubeconfig === undefined ? usual : [kubeconfig],
    context: wanted.context,
    folder,
    onFailure: (err) => log.warn('Credentials of the mirrored cluster not renewed', { err }),
  })
  const clusterName = wanted.clusterName === UNNAMED ? opened.clusterName : wanted.clusterName
  const clustersFile = join(folder, 'clusters.yaml')
  const clusters = {
    apiVersion: 'tidings.dev/v1alpha1',
    kind: 'ClusterConfiguration',
    clusters: [{ name: clusterName, kubeconfig: opened.kubeconfig, mirror: {} }],
  }
  // JSON is valid YAML.
  await writeFile(clustersFile, `${JSON.stringify(clusters, undefined, 2)}\n`)
  return { options: { clusterName, clustersFile }, context: { ...opened, clusterName } }
}
