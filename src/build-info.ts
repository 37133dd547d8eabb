import { readFileSync } from 'node:fs'
import { Gauge, type Registry } from '@prometheus-io/client'
import type { BuildInfo } from './endpoints/server-info.ts'

/** The release of Kubernetes whose API this server follows, as clients want to see it first. */
const KUBERNETES = { major: '1', minor: '36', version: 'v1.36.0' } as const

const COMMIT_DIGITS = 12

/**
 * What this build is. The Kubernetes version comes first, as that is what clients compare with
 * their own; our version follows as build metadata. The commit is known to builds made by
 * `npm run build`; a server run from its sources leaves it empty.
 */
export function buildInfo(): BuildInfo {
  const { version } = readJson('../package.json')
  const build = readJson('./build.json')
  return {
    major: KUBERNETES.major,
    minor: KUBERNETES.minor,
    gitVersion: `${KUBERNETES.version}+tidings-${version}`,
    gitCommit: build['gitCommit'] ?? '',
    gitTreeState: build['gitTreeState'] ?? '',
    buildDate: build['buildDate'] ?? '1970-01-01T00:00:00Z',
    goVersion: process.version,
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
  }
}

/** What `--version` prints. */
export function versionLine(): string {
  const { version } = readJson('../package.json')
  const parts = [
    ...commitOf(buildInfo()),
    `Kubernetes ${KUBERNETES.version}`,
    `Node ${process.version}`,
  ]
  return `tidings v${version} (${parts.join(', ')})`
}

/** Nothing where it is not known: in the sources, and in builds from an archive. */
function commitOf({ gitCommit, gitTreeState }: BuildInfo): readonly string[] {
  if (gitCommit === '') return []
  const changed = gitTreeState === 'dirty' ? ' with changes' : ''
  return [`commit ${gitCommit.slice(0, COMMIT_DIGITS)}${changed}`]
}

/** The same for dashboards: which of the replicas run what. */
export function showBuild(registry: Registry): void {
  const { version = '' } = readJson('../package.json')
  const gauge = new Gauge({
    name: 'tidings_build_info',
    help: 'Always 1; its labels tell version, commit and Node of this build.',
    labelNames: ['version', 'commit', 'node'],
    registers: [registry],
  })
  gauge.set({ version, commit: buildInfo().gitCommit, node: process.version }, 1)
}

function readJson(path: string): Readonly<Record<string, string>> {
  try {
    return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
  } catch {
    // build.json is there in a build only.
    return {}
  }
}
