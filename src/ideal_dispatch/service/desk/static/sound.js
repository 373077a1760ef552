// Two short tones for a second ambulance, one for anything else; off until somebody asks.

import { recall, remember } from "./memory.js";

let context = null;

export const soundOn = () => recall("sound") === "on";

export function switchSound() {
  remember("sound", soundOn() ? "off" : "on");
  if (soundOn()) play("primary_only");
}

export function play(decision) {
  if (!soundOn()) return;
  context ??= new AudioContext();
  const tones = decision === "send_second" ? [660, 880] : [440];
  tones.forEach((frequency, number) => tone(frequency, context.currentTime + 0.22 * number));
}

function tone(frequency, start) {
  const [source, volume] = [context.createOscillator(), context.createGain()];
  source.frequency.value = frequency;
  volume.gain.setValueAtTime(0.0001, start);
  volume.gain.exponentialRampToValueAtTime(0.2, start + 0.02);
  volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.2);
  source.connect(volume).connect(context.destination);
  source.start(start);
  source.stop(start + 0.22);
}
