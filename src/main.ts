import { keepMemoryPrivate } from './kit/private-memory.ts';

// Before the other modules are loaded: that takes longer than anything else at the start.
keepMemoryPrivate();
await import('./commands.ts');
