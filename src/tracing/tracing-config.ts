/** Reads the file of `--tracing-config-file`, a Kubernetes TracingConfiguration, once at start. */
import { readBounded } from '../lib/files/bounded-file.ts'
import { configurationIn, mistake, objectOf, shown, textOf } from '../lib/files/config-fields.ts'
import { type JsonObject, memberOf } from '../lib/json.ts'

const KIND = 'TracingConfiguration'
const API_VERSIONS = [
  'apiserver.config.k8s.io/v1',
  'apiserver.config.k8s.io/v1beta1',
  'apiserver.config.k8s.io/v1alpha1',
] as const
const FILE_BYTES_MAX = 64 * 1024
const ENDPOINT_DEFAULT = 'localhost:4317'
const RATE_MAX = 1_000_000

export interface TracingConfig {
  /** `host:port`, or `unix:///path`. */
  readonly endpoint: string
  /** Applies to requests that no trusted client decides about. */
  readonly samplingRatePerMillion: number
}

/** Rejects if the file cannot be used; the error names the file and the field. */
export async function loadTracingConfig(path: string): Promise<TracingConfig> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  try {
    return readTracingConfig(content.toString())
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${path}: ${why}`, { cause })
  }
}

/** Throws an error that names the wrong field. */
export function readTracingConfig(text: string): TracingConfig {
  const value = configurationIn(text, { apiVersion: API_VERSIONS, kind: KIND })
  const tree = objectOf(value, '', ['apiVersion', 'kind', 'endpoint', 'samplingRatePerMillion'])
  return { endpoint: endpointOf(tree), samplingRatePerMillion: rateOf(tree) }
}

function rateOf(tree: JsonObject): number {
  // The default is that of Kubernetes: only trusted clients have requests recorded.
  const rate = memberOf(tree, 'samplingRatePerMillion') ?? 0
  if (typeof rate === 'number' && Number.isInteger(rate) && rate >= 0 && rate <= RATE_MAX) {
    return rate
  }
  throw mistake(
    'samplingRatePerMillion',
    `${shown(rate)} is not a whole number from 0 to ${RATE_MAX}: write 10000 for one request of a hundred`,
  )
}

const EXAMPLES = `write host:port, such as ${ENDPOINT_DEFAULT}, or unix:///path/of/a/socket`

function endpointOf(tree: JsonObject): string {
  const text = textOf(tree, 'endpoint', '') ?? ENDPOINT_DEFAULT
  const [, scheme = 'dns', rest = ''] = /^(?:([^/]*?):?\/\/)?(.*)$/s.exec(text) ?? []
  if (scheme === 'unix' && /^\/[^\s?#]+$/.test(rest)) return text
  // The text is not quoted, because it may have a password before the @.
  if (text.includes('@')) throw mistake('endpoint', `an address has no @: ${EXAMPLES}`)
  if (scheme !== 'unix' && scheme !== 'dns') {
    const hint = /^https?$/.test(scheme) ? ' (the protocol is gRPC without TLS)' : ''
    throw mistake('endpoint', `${shown(text)} has an unsupported scheme${hint}: ${EXAMPLES}`)
  }
  const address = rest.replace(/^\//, '')
  if (scheme === 'dns' && isHostAndPort(address)) return address
  throw mistake('endpoint', `${shown(text)} is not an address: ${EXAMPLES}`)
}

function isHostAndPort(text: string): boolean {
  if (!/^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):\d{1,5}$/.test(text)) return false
  const port = Number(text.slice(text.lastIndexOf(':') + 1))
  // A URL cannot have 999.1.1.1 or [1:2] as its host.
  return port > 0 && port < 65_536 && URL.canParse(`http://${text}`)
}
