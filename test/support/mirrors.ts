/** Servers that mirror other ones: their files, and when they follow. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tidings } from './tidings.ts'

const pollMs = 500

/** Writes the clusters file, with a kubeconfig for each name; returns the flag for it. */
export async function mirrorsFlag(
  folder: string,
  kubeconfigs: Readonly<Record<string, string>>,
): Promise<string> {
  for (const [name, config] of Object.entries(kubeconfigs)) {
    await writeFile(join(folder, `${name}.kubeconfig`), config, { mode: 0o600 })
  }
  const clusters = Object.keys(kubeconfigs).map((name) => ({
    name,
    kubeconfig: `${name}.kubeconfig`,
    mirror: { deletes: 'never' },
  }))
  const path = join(folder, 'clusters.yaml')
  const kind = 'ClusterConfiguration'
  await writeFile(path, JSON.stringify({ apiVersion: 'tidings.dev/v1alpha1', kind, clusters }))
  return `--clusters-file=${path}`
}

/** A kubeconfig for one user of a server. */
export function kubeconfig(server: string, ca: string, token: string): string {
  const authority = Buffer.from(ca).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'a', user: { token } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  })
}

/** Resolves when some of these replicas follow the origins of all these clusters. */
export async function untilFollowing(
  servers: readonly Tidings[],
  clusters: readonly string[],
  timeoutMs: number,
): Promise<void> {
  const isFollowing = (metrics: string): boolean =>
    clusters.every((name) =>
      metrics.includes(`tidings_mirror_state{cluster="${name}",state="Following"} 1`),
    )
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const answers = await Promise.all(servers.map((server) => server.ask('/metrics')))
    if (isFollowing(answers.map(({ body }) => body).join('\n'))) return
    if (performance.now() > deadline) throw new Error('the mirror does not follow its origin')
    await sleep(pollMs)
  }
}
