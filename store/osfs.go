package store

// OS is the file system of the machine.
func OS() FS { panic("not written yet") }
