/**
 * Work for controller manager and scheduler, which then write events of their own: a Deployment
 * that is scaled up and down, and pods that no node can run.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventClient } from '../../support/event-client.ts'
import { Session } from './session.ts'

const everyMs = 7_000
const sizes = [3, 8, 1, 5] as const

export async function runControllers(
  open: () => Promise<EventClient>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  using session = new Session(open)
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  for (let index = 0; !signal.aborted; index++) {
    const replicas = sizes[index % sizes.length]
    try {
      const patch = { method: 'PATCH', path: `${deployments}/web`, body: scale(replicas) }
      const headers = { 'content-type': 'application/merge-patch+json' }
      const { status } = await session.request({ ...patch, headers })
      if (status === 404) {
        const create = { method: 'POST', path: deployments, body: deployment(namespace) }
        await session.request({ ...create, headers: { 'content-type': 'application/json' } })
      }
    } catch {
      // The API server is down; the next one may work.
    }
    await sleep(everyMs)
  }
}

function scale(replicas: number | undefined): string {
  return JSON.stringify({ spec: { replicas } })
}

function deployment(namespace: string): string {
  const labels = { app: 'web' }
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'web', image: 'registry.example.com/web:1' }] },
      },
    },
  })
}
