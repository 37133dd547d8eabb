/** What members expose over HTTP only, on their client URLs. */
import http from 'node:http'
import https from 'node:https'
import type { TlsMaterial } from './tls-material.ts'

const TIMEOUT_MS = 5_000
/** Ten times the size of etcd's metrics. */
const RESPONSE_BYTES_MAX = 2 * 1024 * 1024
const QUOTA = /^etcd_server_quota_backend_bytes (\S+)$/m
const FAILED_CHECK = /^\[-\](\S+)/gm
/** A caller that has no response to its reads knows the result of this check, which takes 7 s. */
const CHECKS = '/readyz?verbose&exclude=linearizable_read'

export interface MemberHttpOptions {
  readonly tls: TlsMaterial | undefined
  readonly signal: AbortSignal
}

interface Response {
  readonly status: number | undefined
  readonly text: string
}

/**
 * Reads the space quota of a member from its metrics: etcd 3.5 exposes it nowhere else. It is below 0
 * if the member has none. Rejects when the quota cannot be read, and when the signal aborts.
 */
export async function readQuota(endpoint: string, options: MemberHttpOptions): Promise<number> {
  const { status, text } = await get(endpoint, '/metrics', options)
  if (status !== 200) throw new Error(`GET /metrics of etcd returned status ${status}`)
  const bytes = Number(QUOTA.exec(text)?.[1])
  if (!bytes) throw new Error(`${endpoint}/metrics does not contain the quota`)
  return bytes
}

/**
 * Describes the result of a member's checks of its own health, apart from that of linearizable
 * reads: `passes`, or `fails` and their names. Rejects when the member does not respond, and when the
 * signal aborts.
 */
export async function readChecks(endpoint: string, options: MemberHttpOptions): Promise<string> {
  const { status, text } = await get(endpoint, CHECKS, options)
  const failed = [...text.matchAll(FAILED_CHECK)].map(([, name = '']) => name).sort()
  if (status === 503 && failed.length > 0) return `fails ${failed.join(' and ')}`
  if (status === 200) return 'passes'
  // Members before etcd 3.5.11 return 404.
  return status === 404 ? 'has no such checks' : `returned status ${status}`
}

function get(
  endpoint: string,
  path: string,
  { tls, signal }: MemberHttpOptions,
): Promise<Response> {
  const url = new URL(path, /^https?:/.test(endpoint) ? endpoint : `http://${endpoint}`)
  return url.protocol === 'https:'
    ? read((done) => https.get(url, { ...tls, agent: false, signal }, done))
    : read((done) => http.get(url, { agent: false, signal }, done))
}

function read(
  send: (done: (response: http.IncomingMessage) => void) => http.ClientRequest,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = send((response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length <= RESPONSE_BYTES_MAX) return
        request.destroy(new Error('the response of etcd is too large'))
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, text }))
    })
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error('etcd did not respond in time')))
    request.on('error', reject)
  })
}
