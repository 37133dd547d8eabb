/** Prints what happened in a run: one lane for each replica, one for etcd, one for the rest. */
import type { TraceLine } from './world.ts'

const lanes = ['world', 'etcd']
/** One letter above each lane: the world, etcd, and the number of each replica. */
const letterOf = (name: string): string =>
  name.startsWith('replica-') ? name.slice(-1) : name.slice(0, 1)

export function formatTimeline(lines: readonly TraceLine[], replicas: number): string {
  const names = [...lanes, ...Array.from({ length: replicas }, (_, index) => `replica-${index}`)]
  const header = `   time, s  ${names.map(letterOf).join('  ')}`
  const rows = lines.map(({ atMs, who, text }) => {
    const lane = laneOf(names, who)
    const marks = names.map((_, index) => (index === lane ? '●' : '│')).join('  ')
    return `${(atMs / 1000).toFixed(4).padStart(10)}  ${marks}  ${who}: ${text}`
  })
  return [header, ...rows].join('\n')
}

function laneOf(names: readonly string[], who: string): number {
  return Math.max(
    0,
    names.findIndex((name) => who.includes(name)),
  )
}
